"""The version of judgebench, which stands in every run folder."""

VERSION = "0.1.0"
