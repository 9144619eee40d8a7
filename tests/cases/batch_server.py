"""A real server on 127.0.0.1 with the batch endpoints of OpenAI, and their faults.

    with BatchServer(lambda body: "a reply") as server:
        ...  # server.base_url, server.created, server.paid

`fates` says what becomes of a request of a batch, by its body and how often it has come: `ok`,
`missing`, `expired`, `garbled`, or an HTTP status. The plays in `unheard` and `unanswered`
are what the next calls of a kind get, before anything is done or after; the kinds are `file`,
`create`, `state`, `results` and `list`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from loopback import Body, Loopback, Play, completion

Fate = str | int
MADE = ("ok", "missing", "garbled")  # the fates of requests that cost something


class BatchServer(Loopback):
    """`created` holds the requests of each batch as sent, by its id; `paid` counts how often each
    was made, by the text of its last message; `asked` counts calls. Batches end while `ready`."""

    def __init__(
        self, reply: Callable[[Body], str], fates: Callable[[Body, int], Fate] = lambda *_: "ok"
    ) -> None:
        super().__init__([])
        self._reply, self._fates = reply, fates
        self.created: dict[str, list[dict[str, Any]]] = {}
        self.failed_as_a_whole = ""
        self.complaint = "on purpose"
        self.ready = True
        self.paid = Counter[str]()
        self.asked = Counter[str]()
        self.unheard: dict[str, list[Play]] = defaultdict(list)
        self.unanswered: dict[str, list[Play]] = defaultdict(list)
        self._files: dict[str, str] = {}
        self._of_file: dict[str, str] = {}
        self._came = Counter[str]()

    def _add_routes(self, app: web.Application) -> None:
        post, get = app.router.add_post, app.router.add_get
        post("/v1/chat/completions", self._single(completion))
        post("/v1/files", self._kind("file", self._upload))
        post("/v1/batches", self._kind("create", self._create))
        get("/v1/batches", self._kind("list", self._list))
        get("/v1/batches/{id}", self._kind("state", self._state))
        get("/v1/files/{id}/content", self._kind("results", self._content))

    def _single(self, shape: Callable[[str], Mapping[str, Any]]) -> Any:
        async def serve(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            self.bodies.append(body)
            self.paid[last_text(body)] += 1
            return web.json_response(shape(self._reply(body)))

        return serve

    def _kind(self, kind: str, act: Any) -> Any:
        async def serve(request: web.Request) -> web.StreamResponse:
            self.asked[kind] += 1
            self.headers.append(dict(request.headers))
            if self.unheard[kind]:
                return await self.unheard[kind].pop(0)(request, {})
            answer: web.StreamResponse = await act(request)
            if self.unanswered[kind]:
                return await self.unanswered[kind].pop(0)(request, {})
            return answer

        return serve

    # --- OpenAI ----------------------------------------------------------------------------------

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        assert form["purpose"] == "batch"
        file = form["file"]
        assert isinstance(file, web.FileField)
        name = f"file-{len(self._files)}"
        self._files[name] = file.file.read().decode()
        return web.json_response({"id": name, "object": "file"})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        assert asked["endpoint"] == "/v1/chat/completions"
        assert asked["completion_window"] == "24h"
        lines = [json.loads(one) for one in self._files[asked["input_file_id"]].splitlines()]
        assert all((one["method"], one["url"]) == ("POST", asked["endpoint"]) for one in lines)
        name = f"batch_{len(self.created)}"
        self._keep(name, [{"custom_id": one["custom_id"], "body": one["body"]} for one in lines])
        self._of_file[name] = asked["input_file_id"]
        return web.json_response(self._about(name))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        found = [self._about(name) for name in self.created]
        return web.json_response({"data": found, "has_more": False})

    async def _state(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        if name not in self.created:
            raise web.HTTPNotFound(text=json.dumps({"error": {"message": f"No batch {name}"}}))
        return web.json_response(self._about(name))

    def _about(self, name: str) -> dict[str, Any]:
        total = len(self.created[name])
        about = {"id": name, "input_file_id": self._of_file.get(name), "object": "batch"}
        if self.failed_as_a_whole:
            errors = {"data": [{"code": "invalid", "message": self.failed_as_a_whole, "line": 1}]}
            return {**about, "status": "failed", "errors": errors}
        done = total if self.ready else total // 2
        counts = {"total": total, "completed": done, "failed": 0}
        about |= {"request_counts": counts, "status": "completed" if self.ready else "in_progress"}
        if self.ready:
            about |= {"output_file_id": f"out-{name}", "error_file_id": f"err-{name}"}
        return about

    async def _content(self, request: web.Request) -> web.StreamResponse:
        kind, _, name = request.match_info["id"].partition("-")
        lines = []
        for one in reversed(self.created[name]):  # in another order
            fate = one["fate"]
            head = {"id": "batch_req_1", "custom_id": one["custom_id"]}
            if fate == "expired" and kind == "err":
                error = {"code": "batch_expired", "message": "This request was not made in time."}
                lines.append(json.dumps({**head, "response": None, "error": error}))
            elif isinstance(fate, int) and kind == "err":
                said = {"error": {"message": self.complaint, "type": "test"}}
                lines.append(json.dumps({**head, "response": {"status_code": fate, "body": said}}))
            elif fate == "garbled" and kind == "out":
                lines.append(json.dumps(head)[:-9])
            elif fate == "ok" and kind == "out":
                response = {"status_code": 200, "body": completion(self._reply(one["body"]))}
                lines.append(json.dumps({**head, "response": response, "error": None}))
        return web.Response(text="\n".join(lines))

    def _keep(self, name: str, requests: list[dict[str, Any]]) -> None:
        ids = [one["custom_id"] for one in requests]
        assert len(set(ids)) == len(ids), "custom_ids must differ"
        self.created[name] = requests
        for one in requests:
            text = last_text(one["body"])
            one["fate"] = self._fates(one["body"], self._came[text])
            self._came[text] += 1
            self.paid[text] += one["fate"] in MADE


def last_text(body: Body) -> str:
    """What the last message of a request says, in either protocol."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[-1]["text"])
