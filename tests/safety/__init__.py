"""What must never happen, rule by rule."""
