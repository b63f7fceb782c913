"""What is measured, and against which limit; run by ``make bench``."""
