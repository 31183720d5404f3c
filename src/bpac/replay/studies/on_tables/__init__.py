"""Studies on tables of answers: what is saved, and whether the promise held."""
