"""A running embedded cluster, shown to a person: its facts, its words, its screen."""
