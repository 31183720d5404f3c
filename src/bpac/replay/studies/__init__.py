"""Studies: results that ``bpac reproduce`` writes by name, as numbers, figures and a report."""
