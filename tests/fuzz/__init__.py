"""Random days under random faults: nothing may happen that must never happen."""
