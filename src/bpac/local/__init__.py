"""A real pair that runs anywhere: one small model that answers directly or thinks first (extra ``local``)."""
