// Stands before the scripts of both pages of a study: what they ask the server, and how they show
// text of the study.
const ask = async (path, body) => {
  const headers = { "X-Judgebench": "1" };
  if (body) headers["Content-Type"] = "application/json";
  const reply = await fetch(path, {
    method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body),
    cache: "no-store", signal: AbortSignal.timeout(60000), // figures of a large study take a while
  });
  const answer = await reply.json().catch(() => ({}));
  if (reply.ok) return answer;
  throw Object.assign(new Error(answer.error || `error ${reply.status}`), { status: reply.status });
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

// A judge reads characters that turn a text around as they stand, and so people see them.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;
const visible = (text) => text.replace(TURNS, (sign) => `[U+${sign.charCodeAt(0).toString(16).toUpperCase()}]`);
// In its own language and direction.
const born = (tag, className, text) => {
  const box = el(tag, className, text === undefined ? text : visible(String(text)));
  box.dir = "auto";
  box.lang = "";
  return box;
};

// Pictures of the study by name: the address at which this page holds each one.
const PICTURES = new Map();
const PICTURE_ROUTE = location.pathname.endsWith("/lead") ? "api/lead/picture" : "api/picture";
const fetchPicture = async (name) => {
  if (PICTURES.has(name)) return;
  const reply = await fetch(`${PICTURE_ROUTE}/${name}`, { headers: { "X-Judgebench": "1" } });
  if (!reply.ok) return;
  PICTURES.set(name, URL.createObjectURL(await reply.blob()));
  for (const box of document.querySelectorAll(`img[data-name="${name}"]`)) box.src = PICTURES.get(name);
};
const pictureBox = (name, text) => {
  const box = el("img");
  box.alt = text || WORDS.image;
  box.dataset.name = name;
  if (PICTURES.has(name)) box.src = PICTURES.get(name);
  else fetchPicture(name).catch(() => {}); // the text in its place says what is missing
  return box;
};

// A text with its tree, if it is Markdown (people/markdown.py): elements of these kinds, without
// attributes but for those of a formula. Every block has a direction of its own, and a wide table
// scrolls by itself.
const WORDS = { empty: "(no text)", table: "Table", image: "Image" };
const ELEMENTS = new Set(
  "p h3 ul ol li blockquote table thead tbody tr th td strong em s br hr pre code".split(" "),
);
const MATHS = new Set(
  "math mrow mi mn mo mtext mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd".split(" "),
);
const MATHS_ATTRIBUTES = ["display", "alttext", "linethickness", "stretchy", "accent", "form"];
const formula = (tag, attributes) => {
  const box = document.createElementNS("http://www.w3.org/1998/Math/MathML", tag);
  for (const name of MATHS_ATTRIBUTES)
    if (name in attributes) box.setAttribute(name, attributes[name]);
  if (tag === "math") box.tabIndex = 0; // a wide one scrolls by itself
  return box;
};
const grown = (node) => {
  if (typeof node === "string") return visible(node);
  const [tag, more, nodes] = node;
  if (tag === "img") return pictureBox(...nodes);
  const box = MATHS.has(tag) ? formula(tag, more) : el(ELEMENTS.has(tag) ? tag : "span");
  if (tag === "ol" && more !== 1) box.start = more;
  if (tag === "h3") box.className = `level${more}`;
  box.append(...nodes.map(grown));
  return box;
};
const textBox = ({ text, tree }, raw = false) => {
  if (!text.trim()) return el("p", "empty", WORDS.empty);
  if (!tree || raw) return born("p", "text", text);
  const box = el("div", "text marked");
  for (const block of tree.map(grown)) {
    block.dir = block.tagName === "PRE" ? "ltr" : "auto";
    block.lang = "";
    const wide = block.tagName === "TABLE" && el("div", "wide");
    if (wide) {
      wide.tabIndex = 0;
      wide.setAttribute("role", "group");
      wide.setAttribute("aria-label", WORDS.table);
      wide.append(block);
    }
    box.append(wide || block);
  }
  return box;
};
