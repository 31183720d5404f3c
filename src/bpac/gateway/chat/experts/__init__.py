"""The expert's answer, passed on as it arrives, and the grading of the draft against it."""
