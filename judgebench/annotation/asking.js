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

// The labels of a field that were given as one, and the same after one more was pressed: of its first
// `together` options several may be given, in the order of pressing; pressed again, one is taken back.
const BETWEEN = " | ";
const givenIn = (field, label) => (label == null ? [] : field.together ? label.split(BETWEEN) : [label]);
const pressed = (field, label, value) => {
  const [before, joint] = [givenIn(field, label), new Set(field.options.slice(0, field.together).map((one) => one.value))];
  if (!field.together || (!joint.has(value) && !before.includes(value))) return value;
  const others = before.filter((one) => one !== value && joint.has(one));
  return [...others, ...(before.includes(value) ? [] : [value])].join(BETWEEN) || null;
};
// Which of the labels counts where only one does.
const ORDER = "Several may be right. Choose first the one you would give if you could give only one.";
const mark = (box, input, given) => {
  input.checked = given.includes(input.value);
  box.classList.toggle("first", given.length > 1 && given[0] === input.value);
};

// In its own language and direction.
const born = (tag, className, text) => {
  const made = el(tag, className, text);
  made.dir = "auto";
  made.lang = "";
  return made;
};

// A text with its tree, if it is Markdown (people/markdown.py): elements without attributes. Every
// block has a direction of its own, and a wide table scrolls by itself.
const ELEMENTS = new Set(
  "p h3 ul ol li blockquote table thead tbody tr th td strong em s br hr pre code".split(" "),
);
const grown = (node) => {
  if (typeof node === "string") return node;
  const [tag, number, nodes] = node;
  const made = el(ELEMENTS.has(tag) ? tag : "span");
  if (tag === "ol" && number !== 1) made.start = number;
  if (tag === "h3") made.className = `level${number}`;
  made.append(...nodes.map(grown));
  return made;
};
const textBox = ({ text, tree }, raw = false) => {
  if (!text.trim()) return el("p", "empty", "(no text)");
  if (!tree || raw) return born("p", "text", text);
  const box = el("div", "text marked");
  for (const block of tree.map(grown)) {
    block.dir = block.tagName === "PRE" ? "ltr" : "auto";
    block.lang = "";
    const wide = block.tagName === "TABLE" && el("div", "wide");
    if (wide) {
      wide.tabIndex = 0;
      wide.setAttribute("role", "group");
      wide.setAttribute("aria-label", "Table");
      wide.append(block);
    }
    box.append(wide || block);
  }
  return box;
};
