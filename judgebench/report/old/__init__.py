"""The writers of the four results side by side, until each is a part."""
