"""Do any of the questions in an eval set already appear inside the training data?"""

__version__ = "0.1.0"
