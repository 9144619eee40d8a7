// Stands before the script of a page that people fill in: what they say is kept in this browser at
// once, and saved as a table. Text of the data reaches the page through textContent and value only.
const data = JSON.parse($("data").textContent);

// A paragraph of text, or a word in its place.
const shownText = (text) => (text.trim() ? el("p", "text", text) : el("p", "empty", "(no text)"));

// A button, and on it the key that does the same.
const keyButton = (className, text, key, act) => {
  const made = el("button", className, text);
  made.type = "button";
  made.append(" ", el("kbd", "", key));
  made.addEventListener("click", act);
  return made;
};

// Keys act where nobody is writing; `actOf` finds what a key does.
const onKeys = (actOf) =>
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.("input, textarea, select")) return;
    const act = actOf(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  });

// What this browser keeps under a name, and the function that writes it down.
const browserStore = (name, blank) => {
  const tryTo = (act) => {
    try {
      return act();
    } catch {
      $("no-store").hidden = false;
      return {};
    }
  };
  const kept = { ...blank, ...tryTo(() => JSON.parse(localStorage.getItem(name) || "{}")) };
  return [kept, () => tryTo(() => localStorage.setItem(name, JSON.stringify(kept)))];
};

// A text as Python writes it into a cell (data.cells, data.spreadsheet): no spreadsheet runs it.
const safe = (text) => {
  const shown = text.replace(/[\0-\x08\x0e-\x1f\x7f\ud800-\udfff]/gu, "\ufffd");
  const formula =
    /^'*([\t\r\n]|[ \t\n\v\f\r\u00a0\u2000-\u200f\u2028\u2029\u3000\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20])/;
  return formula.test(shown) ? `'${shown}` : shown;
};

// The button downloads the table; `rows` gives its cells as they are then.
const saveAsTable = (rows) => {
  const line = (cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join() + "\n";
  $("bar").hidden = false;
  $("bar").addEventListener("submit", (event) => event.preventDefault());
  $("save").addEventListener("click", () => {
    const text = "\ufeff" + [data.columns, ...rows()].map(line).join("");
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = data.table;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
};
