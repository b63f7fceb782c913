"""Deciders broken on purpose: the guard, and without it the checkers, catch each."""
