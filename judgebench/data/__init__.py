"""Files of answers and human labels, in whatever columns and spellings they come."""

from judgebench.data.kept import is_kept, keep_data
from judgebench.data.load import CheckReport, check_files, load_data
from judgebench.data.spec import DataSpec

__all__ = ["CheckReport", "DataSpec", "check_files", "is_kept", "keep_data", "load_data"]
