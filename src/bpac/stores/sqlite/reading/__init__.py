"""Reading journals, also while a gateway writes to them."""
