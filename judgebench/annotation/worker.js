// The annotator's page, their items and the pictures in them come from the server, and without it
// from what this browser kept of them.
const KEPT = "judgebench annotate";
const fetchOrKept = async (request, pathname) => {
  const kept = await caches.open(KEPT);
  const reply = await fetch(request).catch(() => null);
  if (reply?.ok) await kept.put(pathname, reply.clone());
  if (reply?.ok && pathname === "/api/assignment") await kept.delete("/api/work"); // it holds the labels
  if (reply && reply.status < 500) return reply; // a proxy answers 502 for a server that is down
  return (await kept.match(pathname)) || reply || Response.error();
};
addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(caches.open(KEPT).then((kept) => kept.add("/")));
});
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  const isKept = /^\/(api\/assignment|api\/picture\/\w+)?$/.test(pathname);
  if (isKept) event.respondWith(fetchOrKept(event.request, pathname));
});
