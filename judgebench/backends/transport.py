"""What every backend over a network shares: lazy pull, concurrency, retries, a clean end.

The requests are pulled in the caller's thread, one for every reply that leaves, so no more than
`concurrency` are ever held. The calls run on an event loop in a thread of their own, which works
in notebooks too; that thread and its sockets live as long as the stream does.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from collections.abc import Iterator as Iter
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakSet

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from judgebench.backends.chat import Completion
from judgebench.backends.contract import Reply, Request
from judgebench.backends.settings import BackendSettings
from judgebench.errors import Problem, SetupError
from judgebench.records import Usage
