"""What is generated from the program: reasons, CRDs, the picture of the demo."""
