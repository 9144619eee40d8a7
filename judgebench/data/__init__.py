"""Read answers and human labels from files with any columns and spellings."""

from judgebench.data.kept import is_kept, keep_data
from judgebench.data.load import CheckReport, check_files, load_data
from judgebench.data.spec import DataSpec

__all__ = ["CheckReport", "DataSpec", "check_files", "is_kept", "keep_data", "load_data"]
