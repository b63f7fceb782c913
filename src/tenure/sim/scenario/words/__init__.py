"""The words of the scenario language: what each means, what it takes, and an example.

May import: nothing of Tenure.
The readers take the words that they know from here, and the page of reference is made from the same
tables: a word that is not here cannot be written in a scenario, and none is left out of the page.
Start reading: word.py, then verbs.py.
"""
