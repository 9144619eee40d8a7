// Stands before the scripts of both pages of a study: what they ask the server, and how they show
// text of the study.
const ask = async (path, body) => {
  const headers = { "X-Judgebench": "1" };
  if (body) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, {
    method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body),
    cache: "no-store", signal: AbortSignal.timeout(60000), // figures of a large study take a while
  });
  const found = await reply.json().catch(() => ({}));
  if (reply.ok) return found;
  throw Object.assign(new Error(found.error || `error ${reply.status}`), { status: reply.status });
};

// In its own language and direction.
const born = (tag, className, text) => {
  const made = el(tag, className, text);
  made.dir = "auto";
  made.lang = "";
  return made;
};
