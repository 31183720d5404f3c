"""A small language model that runs on any machine and answers directly or after thinking (extra ``local``)."""
