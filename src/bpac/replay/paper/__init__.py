"""The paper's figures and tables, each as a section of the report: what the paper prints beside what is measured."""
