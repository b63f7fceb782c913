"""Text from outside as plain values, within limits: the only parser of YAML and JSON.

``limits`` says how much is read, ``files`` reads a file, ``yamltext`` and ``jsontext`` turn text
into values. Nothing here recurses over input, so that no input can exhaust the stack; an alias
costs what it stands for, so that no input can grow in memory. A test keeps every other module from
parsing by itself (``tests/parse/test_one_parser.py``).

May import: errors.
Start reading: yamltext.py.
"""
