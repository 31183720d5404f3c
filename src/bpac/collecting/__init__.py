"""From two model servers to a table for replay: collect answers, grade them, write the table."""
