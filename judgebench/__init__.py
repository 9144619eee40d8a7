"""judgebench: may this judge stand in for your human annotators?"""

__version__ = "0.1.0"
