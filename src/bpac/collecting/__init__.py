"""From two model servers to a table: answers, grades and rows, each kept in a file of its own."""
