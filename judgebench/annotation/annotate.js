// The annotator's page. Every act is an event: kept in this browser at once, shown at once, and sent
// until the server says that it is saved. The offline sheet is the same page with the study in it
// (`sheet`), whose events stay in the browser. Text of the study reaches the page through textContent
// and value only.
const { sheet } = JSON.parse($("data").textContent);

// What is not saved yet, oldest first: each event under its own name in the browser's storage, so
// that two tabs never write the same thing.
const eventQueue = (prefix, changed) => {
  const kept = new Map();
  let stamp = 0;
  let broken = false;
  const tryTo = (act) => {
    try {
      act();
    } catch {
      broken = true;
    }
  };
  const take = (name, text) => {
    stamp = Math.max(stamp, Number(name.slice(prefix.length).split(" ")[0]) || 0);
    kept.set(name, JSON.parse(text));
    return kept.get(name);
  };
  tryTo(() => {
    for (const name of Object.keys(localStorage))
      if (name.startsWith(prefix)) take(name, localStorage.getItem(name));
  });
  addEventListener("storage", ({ key, newValue }) => {
    if (!key?.startsWith(prefix)) return;
    if (newValue === null) kept.delete(key);
    changed(newValue === null ? null : take(key, newValue));
  });
  return {
    add(event) {
      stamp = Math.max(Date.now(), stamp + 1);
      const name = `${prefix}${stamp} ${event.client_id}`;
      kept.set(name, event);
      tryTo(() => localStorage.setItem(name, JSON.stringify(event)));
    },
    remove(name) {
      kept.delete(name);
      tryTo(() => localStorage.removeItem(name));
    },
    entries: () => [...kept].sort(([a], [b]) => (a < b ? -1 : 1)),
    size: () => kept.size,
    broken: () => broken,
  };
};

// For how long each item was looked at: time counts while the page can be seen.
const MOST_MS = 300000; // of one event: longer is a person who went away
const stopwatch = () => {
  const looked = new Map();
  let [since, item, seen] = [performance.now(), "", false];
  const turn = (next = item) => {
    const now = performance.now();
    if (seen && item) looked.set(item, (looked.get(item) || 0) + now - since);
    [since, item, seen] = [now, next, document.visibilityState === "visible"];
  };
  const spent = (id) => {
    turn();
    const found = Math.round(Math.min(looked.get(id) || 0, MOST_MS));
    looked.delete(id);
    return found;
  };
  return { turn, spent };
};

(() => {
  const [WHOLE, SKIP, PART, CANNOT_TELL] = ["", "skip", "part", ""];
  const SPANS = "spans "; // before the key of a field: the words that are the reason for its label
  const WHO = "judgebench annotator";
  const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const short = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
  const watch = stopwatch();
  const narrow = matchMedia("(max-width: 55.99rem)"); // texts and questions stand below each other
  const screens = new Map(); // by id, what is known of an item: screen, hash, labels, remark
  const touched = new Map(); // by id, how often its labels changed here: an older answer is dropped
  let undoable = []; // of this tab, which keeps it over a reload
  let work = null;
  let queue = null;
  let at = ""; // the item that is shown; empty: none
  let active = ""; // the field that a digit answers
  let again = false; // skipped items are gone through
  let [lost, why, ended, sending, wait, timer] = [false, "", false, false, 0, 0];
  let savedAt = "";
  let prompted = 0;
  let changes = 0;
  let loading = false; // what is pressed meanwhile would label the item before

  // What this browser remembers of how somebody likes to work.
  const setting = (name, value) => {
    const key = `judgebench annotate ${name}`;
    try {
      value = JSON.parse(localStorage.getItem(key)) ?? value;
    } catch {
      // A browser that keeps nothing: it is as it is at first.
    }
    const set = (to) => {
      value = to;
      try {
        localStorage.setItem(key, JSON.stringify(to));
      } catch {
        // It holds until the page is closed.
      }
    };
    return { on: () => value, set };
  };
  const raw = setting("raw", false); // texts as they were written, with no Markdown rendered

  const auto = setting("auto", null); // until somebody chooses, it is as the study says
  const isAuto = () => auto.on() ?? work.auto_advance;
  const steps = () => `judgebench annotate ${work.study}\n${work.annotator}\nundo`;
  const setUndoable = (to) => {
    undoable = to.slice(-100);
    try {
      sessionStorage.setItem(steps(), JSON.stringify(undoable));
    } catch {
      // It holds until the page is closed.
    }
  };

  const touch = (id) => touched.set(id, ++changes);
  const item = (id = at) => work.items.find((one) => one.id === id);
  const place = (id = at) => work.items.findIndex((one) => one.id === id);
  const say = (text) => {
    $("said").textContent = text;
    clearTimeout(prompted);
    prompted = setTimeout(() => ($("said").textContent = ""), 4000);
  };

  // --- an item and its labels --------------------------------------------------------------------
  const asked = (own) =>
    own.screen.fields.filter((f) => !f.when || own.labels[f.when[0]] === f.when[1]);
  const open = (own) =>
    own.closed ? [] : asked(own).filter((f) => f.part === own.screen.revealed);
  const missing = (own) => open(own).filter((f) => f.required && own.labels[f.key] == null);
  const partsLeft = (own) => own.screen.parts - 1 - own.screen.revealed;
  const stateOf = (own) => {
    if (!partsLeft(own) && !missing(own).length) return "done";
    if (own.labels[WHOLE] === SKIP) return "skipped";
    return Object.values(own.labels).some((label) => label != null) ? "begun" : "new";
  };
  const apply = (own, event) => {
    if (event.hash !== own.hash) return;
    own.labels[event.field] = event.label;
    own.remark = event.remark;
    const known = item(own.screen.id);
    if (known) known.state = stateOf(own);
  };
  const load = async (id) => {
    const before = touched.get(id);
    const found = structuredClone(sheet ? sheet.screens[id] : await ask(`api/screen/${id}`));
    reached();
    if (touched.get(id) !== before && screens.has(id)) return;
    const own = { labels: {}, remark: "", ...found };
    screens.set(id, own);
    for (const [, event] of queue.entries()) if (event.screen === id) apply(own, event);
    if (item(id)) item(id).state = stateOf(own);
  };

  // --- events ------------------------------------------------------------------------------------
  const act = (id, field, label, more = {}) => {
    const own = screens.get(id);
    const remark = more.remark ?? own.remark;
    const before = { id, field, label: own.labels[field] ?? null, remark: own.remark };
    if (!more.undo) setUndoable([...undoable, { ...before, hash: own.hash }]);
    $("said").textContent = ""; // it was about what was before
    const event = {
      client_id: crypto.randomUUID(), screen: id, hash: own.hash, field, label, remark,
      visible_ms: watch.spent(id), at: new Date().toISOString(),
    };
    apply(own, event);
    touch(id);
    queue.add(event);
    savedAt = sheet ? event.at : savedAt;
    send();
    paint();
  };
  const keepTyped = () => {
    const own = screens.get(at);
    if (!own) return;
    for (const box of document.querySelectorAll("#fields textarea:enabled")) {
      const value = box.value.trim() ? box.value : null;
      const { key } = box.dataset;
      if (key === undefined) {
        if (box.value !== own.remark)
          act(at, WHOLE, own.labels[WHOLE] ?? null, { remark: box.value });
      } else if (value !== (own.labels[key] || null)) act(at, key, value);
    }
  };
  const undo = async () => {
    keepTyped();
    const last = undoable.at(-1);
    if (!last || !item(last.id)) return say("Nothing to undo.");
    if (last.id !== at) await show(last.id);
    if (at !== last.id) return;
    setUndoable(undoable.slice(0, -1));
    if (last.hash !== screens.get(at).hash) return say("The item has changed: nothing to undo.");
    act(last.id, last.field, last.label, { undo: true, remark: last.remark });
    if (last.field) activate(last.field.replace(SPANS, ""));
    say("Undone.");
  };

  // One tab at a time sends or signs in: what one person said is never sent with the session of
  // another, who uses the same browser.
  const alone = (act) => (navigator.locks ? navigator.locks.request("judgebench", act) : act());
  const isMine = (name = "") => {
    try {
      if (name) localStorage.setItem(WHO, name);
      return [null, work?.annotator].includes(localStorage.getItem(WHO));
    } catch {
      return true; // a browser that keeps nothing, for nobody
    }
  };
  const sendBatch = async (most) => {
    const batch = queue.entries().slice(0, most);
    let reply;
    try {
      reply = await ask("api/events", { events: batch.map(([, event]) => event) });
    } catch (error) {
      if (error.status !== 400 && error.status !== 413) throw error;
      if (batch.length > 1) return 1; // which one is it? one after the other
      reply = { saved: [], refused: [{ client_id: batch[0][1].client_id, why: error.message }] };
    }
    const refused = new Map(reply.refused.map((one) => [one.client_id, one.why]));
    const settled = new Set([...reply.saved, ...refused.keys()]);
    if (!batch.some(([, event]) => settled.has(event.client_id))) throw new Error("no answer");
    for (const [name, event] of batch) {
      if (!settled.has(event.client_id)) continue;
      queue.remove(name);
      touch(event.screen);
      if (reply.saved.includes(event.client_id)) savedAt = reply.at;
    }
    const sent = batch.map(([, event]) => event);
    if (refused.size) await refuse(sent.filter((e) => refused.has(e.client_id)), refused);
    if (sent.some((e) => e.field === PART && e.screen === at)) await showPart(at);
    return most;
  };
  const refuse = async (events, reasons) => {
    const told = [...new Set(reasons.values())].join("; ");
    $("refused").firstElementChild.textContent =
      `${count(events.length, "label")} not saved: ${told}. You see what is saved.`;
    $("refused").hidden = false;
    for (const id of new Set(events.map((event) => event.screen))) {
      setUndoable(undoable.filter((one) => one.id !== id));
      if (id === at) await load(id).then(build, failed);
      else screens.delete(id);
    }
  };
  const send = async () => {
    if (sheet || sending || ended || !queue.size()) return;
    sending = true;
    clearTimeout(timer);
    try {
      await alone(async () => {
        for (let most = 50; queue.size() && !ended && isMine(); ) {
          most = await sendBatch(most);
          reached();
          tell();
        }
      });
      sending = false;
      if (isMine()) send();
      else location.reload();
    } catch (error) {
      sending = false;
      failed(error);
    }
  };
  const reached = () => {
    if (lost) say("Connected again.");
    [lost, why, wait] = [false, "", 0];
    clearTimeout(timer);
  };
  const failed = (error) => {
    if (error.status === 401) return signedOut();
    if (error.status === 404) return updateWork(); // not this person's any more
    const reason = error.status ? error.message : "";
    if (!lost) say("Not connected. You can go on: answers are kept on this device.");
    [lost, why] = [true, reason];
    wait = Math.min(30000, Math.max(500, wait * 2));
    clearTimeout(timer);
    timer = setTimeout(retry, wait * (0.75 + Math.random() / 2));
    tell();
  };
  const retry = () => (queue.size() ? send() : refresh());
  const signedOut = () => {
    ended = true;
    const n = queue?.size();
    const kept = n ? ` ${count(n, "answer")} kept here: they are sent once you are back.` : "";
    close("You are signed out", `Ask the study lead for a new link and open it here.${kept}`);
  };

  // --- what is shown -----------------------------------------------------------------------------
  const close = (title, text, ...buttons) => {
    watch.turn("");
    at = "";
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    $("work").hidden = $("round").hidden = true;
    $("steps").hidden = !work || ended;
    $("tools").hidden = $("far").hidden = !work || ended;
    $("title").textContent = title;
    $("message").replaceChildren(el("p", "", text), ...buttons);
    $("message").hidden = false;
    for (const name of ["undo", "skip", "next"]) $(name).hidden = name !== "undo";
    tell();
    $("title").focus();
  };
  const button = (text, act, className) => {
    const made = el("button", className, text);
    made.type = "button";
    made.addEventListener("click", act);
    return made;
  };
  const labelOf = (field) => screens.get(at).labels[field.key];
  const option = (field, { value, text, about }, [n, of]) => {
    const words = !field.options.length;
    const box = born("label", value === CANNOT_TELL ? "option unsure" : "option");
    const input = el("input");
    input.type = words || field.together ? "checkbox" : "radio";
    input.value = value;
    // Each radio button is a stop of its own for Tab, so that the arrows are free to go on.
    if (input.type === "radio") {
      input.setAttribute("aria-posinset", n);
      input.setAttribute("aria-setsize", of);
    }
    input.addEventListener("change", () => {
      const before = missing(screens.get(at)).length;
      act(at, field.key, input.checked || field.together ? pressed(field, labelOf(field), value) : null);
      if (!input.checked || !before || field.together) return;
      const [next] = missing(screens.get(at));
      if (!next) endItem();
      else if (narrow.matches) activate(next.key, false, "start");
    });
    const digit = el("kbd", "", value === CANNOT_TELL ? "0" : n < 10 ? String(n) : "");
    digit.setAttribute("aria-hidden", "true");
    digit.hidden = !digit.textContent;
    const said = el("span", "", text);
    if (about) said.append(" ", born("span", "about", about));
    box.append(input, digit, said);
    return box;
  };
  const typing = (key, label) => {
    const box = el("textarea");
    if (key !== undefined) box.dataset.key = key;
    box.setAttribute("aria-label", label);
    box.dir = "auto";
    box.maxLength = 10000;
    let pause = 0;
    box.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(keepTyped, 700);
    });
    box.addEventListener("change", keepTyped);
    return box;
  };
  const fieldBox = (own, field) => {
    const box = el("fieldset");
    box.dataset.key = field.key;
    box.tabIndex = -1;
    box.disabled = field.part < own.screen.revealed;
    box.classList.toggle("locked", box.disabled);
    if (field.options.length && !field.together) box.setAttribute("role", "radiogroup");
    const legend = el("legend");
    legend.append(born("b", "", field.title));
    if (field.question !== field.title) legend.append(born("span", "ask", field.question));
    if (!field.required) legend.append(el("span", "note", "May be left open"));
    if (field.together) legend.append(el("span", "note", ORDER));
    const of = field.options.length + 1;
    const unsure = { value: CANNOT_TELL, text: "Cannot tell" };
    box.append(legend);
    if (!field.options.length) {
      box.append(typing(field.key, field.title));
      box.lastElementChild.required = field.required;
    }
    const brief = field.options.every((one) => !one.about && one.text.length <= 20);
    const choices = el("div", brief && field.options.length ? "options short" : "options");
    field.options.forEach((one, n) => choices.append(option(field, one, [n + 1, of])));
    choices.append(option(field, unsure, [of, of]));
    box.append(choices);
    if (work.spans && field.options.length) box.append(reasons(field));
    box.addEventListener("focusin", () => activate(field.key, false));
    return box;
  };
  const showTexts = () => {
    $("guidelines").querySelector(".reading").replaceChildren(textBox(work.guidelines, raw.on()));
    const { sections } = screens.get(at).screen;
    $("work").classList.toggle("pair", sections.filter((one) => one.compared).length === 2);
    const boxes = sections.map((section) => {
      const box = el("div", section.compared ? "box compared" : "box");
      box.dataset.n = section.n;
      box.append(born("h2", "", section.heading), textBox(section, raw.on()));
      return box;
    });
    if ([...sections, work.guidelines].some(({ tree }) => tree)) {
      const bar = el("div", "raw");
      const press = button("Raw text ", showRaw);
      press.append(el("kbd", "", "R"));
      press.setAttribute("aria-pressed", raw.on());
      bar.append(press);
      boxes.unshift(bar);
    }
    $("texts").replaceChildren(...boxes);
    showSpans(screens.get(at));
  };
  const showRaw = () => {
    raw.set(!raw.on());
    const held = document.activeElement?.closest(".raw");
    showTexts();
    if (held) $("texts").querySelector(".raw button").focus();
  };
  const build = () => {
    const own = screens.get(at);
    const { screen } = own;
    showTexts();
    const boxes = screen.fields.map((field) => fieldBox(own, field));
    if (partsLeft(own)) {
      const box = el("div", "reveal");
      const go = button(`Show the ${later()}`, reveal, "strong");
      go.id = "reveal";
      const told = `Once you have seen the ${later()}, your labels above can no longer be changed.`;
      const warning = el("p", "", told);
      warning.id = "warning";
      go.setAttribute("aria-describedby", warning.id);
      go.append(" ", el("kbd", "", "Enter"));
      box.append(warning, go);
      boxes.push(box);
    }
    const remark = el("label", "remark", "Remark on this item");
    remark.append(typing(undefined, "Remark on this item"));
    $("fields").replaceChildren(...boxes, remark);
    const first = missing(own)[0] || open(own)[0];
    active = first ? first.key : "";
    paint();
  };
  const screenField = (own, key) => own.screen.fields.find((field) => field.key === key);
  const paint = () => {
    const own = screens.get(at);
    if (own) {
      const shown = new Set(asked(own).map((field) => field.key));
      for (const box of $("fields").querySelectorAll("fieldset")) {
        const { key } = box.dataset;
        const given = givenIn(screenField(own, key), own.labels[key]);
        box.hidden = !shown.has(key);
        box.classList.toggle("at", key === active);
        for (const input of box.querySelectorAll("input")) mark(input.closest(".option"), input, given);
      }
      for (const box of $("fields").querySelectorAll("textarea")) {
        const { key } = box.dataset;
        if (box !== document.activeElement)
          box.value = (key === undefined ? own.remark : own.labels[key]) || "";
      }
      showSpans(own);
    }
    tell();
  };
  const tell = () => {
    if (!work) return;
    const n = queue.size();
    const time = savedAt && new Date(savedAt).toLocaleTimeString("en-GB");
    const kept = n ? `: ${count(n, "answer")} kept on this device` : "";
    const waits = `${why ? `Not saved (${why})` : "Not connected"}${kept}`;
    const state = lost ? waits : n ? "Saving…" : time ? `Saved ${time}` : "Saved";
    const text = !sheet ? state : time ? `Kept in this browser ${time}` : "Kept in this browser";
    if ($("saved").textContent !== text) $("saved").textContent = text;
    $("saved").classList.toggle("lost", lost);
    $("no-store").hidden = !queue.broken();
    $("no-store").textContent = sheet
      ? "This browser keeps nothing of this page. Save as file before you close it."
      : "This browser keeps nothing of this page: stay until everything is saved.";
    const total = work.items.length;
    const done = work.items.filter((one) => one.state === "done").length;
    $("part-done").max = total || 1;
    $("part-done").value = done;
    $("progress").textContent = `${done} of ${total} labelled`;
    const each = work.seconds_per_item;
    const left = each && done < total ? `, about ${duration(each * (total - done))} left` : "";
    $("pace").textContent = each ? `${duration(each)} per item${left}` : "";
    $("undo").disabled = !undoable.length;
    $("back").disabled = at ? place() === 0 : !total;
  };
  const duration = (seconds) => {
    if (seconds < 90) return `${Math.round(seconds)} s`;
    const minutes = Math.round(seconds / 60);
    return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
  };

  // --- words that are the reason for a label -----------------------------------------------------
  // Spans are [section, start, end], counted in characters as the server does: one that takes two
  // places in a text here is one.
  const textOf = (n) => screens.get(at).screen.sections.find((one) => one.n === n).text;
  const spansOf = (own, key) => JSON.parse(own.labels[SPANS + key] || "[]");
  const setSpans = (key, spans) => act(at, SPANS + key, spans.length ? JSON.stringify(spans) : null);
  const quote = ([n, from, to]) => [...textOf(n)].slice(from, to).join("");
  const addSpan = (n, from, to) => {
    const [text, spans] = [textOf(n), spansOf(screens.get(at), active)];
    const words = text.slice(from, to);
    const start = from + words.length - words.trimStart().length;
    const one = [n, ...[start, start + words.trim().length].map((i) => [...text.slice(0, i)].length)];
    if (one[1] === one[2]) return false;
    if (!spans.some((other) => other.join() === one.join())) setSpans(active, [...spans, one].sort((a, b) => a[0] - b[0] || a[1] - b[1]));
    return true;
  };
  // The words that are selected in one text of the page, as [section, start, end]. Where Markdown is
  // rendered and they occur more than once, nobody knows which are meant: then the end is -1.
  const selected = () => {
    const chosen = getSelection();
    if (chosen.isCollapsed || !chosen.rangeCount) return null;
    const range = chosen.getRangeAt(0).cloneRange();
    const parent = (node) => (node.closest ? node : node.parentElement);
    const box = parent(range.startContainer).closest("#texts .text");
    if (!box) return null;
    const words = chosen.toString().trim();
    if (!box.contains(range.endContainer)) range.setEnd(box, box.childNodes.length);
    if (range.toString().trim() !== words && !box.contains(chosen.getRangeAt(0).endContainer)) return null;
    const n = Number(box.closest(".box").dataset.n);
    const before = document.createRange();
    before.selectNodeContents(box);
    before.setEnd(range.startContainer, range.startOffset);
    const start = before.toString().length;
    if (box.tagName === "P") return [n, start, start + range.toString().length];
    const first = textOf(n).indexOf(words);
    const once = first >= 0 && textOf(n).indexOf(words, first + 1) < 0;
    return [n, Math.max(first, 0), once ? first + words.length : -1];
  };
  const highlight = (found = selected()) => {
    const field = work.spans && open(screens.get(at)).find((one) => one.key === active);
    if (!field?.options.length) return;
    if (!found || found[2] < 0) return openSpans(field, found || undefined);
    if (addSpan(...found)) say(`Highlighted for ${short(field.title)}.`);
    getSelection().removeAllRanges();
  };
  // The texts as they were written, in boxes where the keyboard selects; nothing in them can change.
  const openSpans = (field, [n, from] = [-1, 0]) => {
    const boxes = screens.get(at).screen.sections.filter(({ text }) => text.trim()).map((section) => {
      const box = el("textarea");
      box.value = section.text;
      box.dir = "auto";
      box.inputMode = "none";
      box.dataset.n = section.n;
      box.addEventListener("beforeinput", (event) => event.preventDefault());
      box.addEventListener("focus", () => (box.closest("div").dataset.n = section.n));
      const label = el("label");
      label.append(born("b", "", section.heading), box);
      return label;
    });
    $("spans-of").textContent = `The reason for your label: ${field.title}`;
    $("spans-said").textContent = "";
    $("spans-texts").replaceChildren(...boxes);
    $("spans").showModal();
    const wanted = $("spans").querySelector(`textarea[data-n="${n}"]`) || boxes.at(-1)?.lastChild;
    wanted?.setSelectionRange(from, from); // before the focus, which scrolls to it
    wanted?.focus();
  };
  const addSelected = () => {
    const box = $("spans").querySelector(`textarea[data-n="${$("spans-texts").dataset.n}"]`);
    const text = box && textOf(Number(box.dataset.n));
    // A text field counts the end of a line as one, however it was written.
    const raw = (i) => (text.includes("\r\n") ? text.split("\r\n").join("\n").slice(0, i).split("\n").length - 1 + i : i);
    const added = box && addSpan(Number(box.dataset.n), raw(box.selectionStart), raw(box.selectionEnd));
    if (added) $("spans").close();
    else $("spans-said").textContent = "Select words first.";
  };
  const reasons = (field) => {
    const box = el("div", "reasons");
    const add = button("Highlight the reason ", () => highlight(held || undefined));
    let held = null;
    // A tap takes the selection away before the click comes.
    add.addEventListener("pointerdown", () => (held = selected()));
    add.addEventListener("mousedown", (event) => event.preventDefault());
    add.addEventListener("click", () => (held = null));
    add.append(el("kbd", "", "H"));
    box.append(el("ul"), add);
    return box;
  };
  const showSpans = (own) => {
    for (const box of $("fields").querySelectorAll("fieldset:has(.reasons)")) {
      const { key } = box.dataset;
      const [list, said] = [box.querySelector(".reasons ul"), own.labels[SPANS + key] || ""];
      if (list.dataset.said === said) continue;
      list.dataset.said = said;
      list.replaceChildren(...spansOf(own, key).map((span) => {
        const line = el("li");
        const remove = button("×", () => {
          activate(key);
          setSpans(key, spansOf(own, key).filter((other) => other.join() !== span.join()));
        });
        remove.setAttribute("aria-label", `Remove “${short(quote(span))}”`);
        line.append(born("q", "", quote(span)), remove);
        return line;
      }));
    }
    if (!globalThis.Highlight) return;
    const ranges = own.screen.fields.flatMap(({ key }) => spansOf(own, key)).flatMap(([n, from, to]) => {
      const text = document.querySelector(`#texts [data-n="${n}"] > p.text`)?.firstChild;
      if (!text) return [];
      const range = document.createRange();
      const [start, end] = [from, to].map((i) => [...text.data].slice(0, i).join("").length);
      range.setStart(text, start);
      range.setEnd(text, end);
      return [range];
    });
    CSS.highlights.set("reason", new Highlight(...ranges));
  };

  // --- going from one to the next ----------------------------------------------------------------
  const show = async (id) => {
    keepTyped();
    if (!screens.has(id)) {
      say("Loading…");
      loading = true;
      try {
        await load(id);
      } catch (error) {
        failed(error);
        if (!ended) say("This item is not on this device yet: it needs the connection.");
        return;
      } finally {
        loading = false;
      }
    }
    watch.turn(id);
    at = id;
    $("said").textContent = "";
    $("message").hidden = true;
    $("steps").hidden = $("work").hidden = false;
    for (const name of ["skip", "next"]) $(name).hidden = false;
    const { round } = item();
    const first = work.items.filter((one) => one.round === round);
    $("round").hidden = !round;
    $("round").firstElementChild.textContent = `${round.slice(0, 1).toUpperCase()}${round.slice(1)} round:`;
    $("round").lastElementChild.textContent =
      `item ${first.indexOf(item()) + 1} of ${first.length}, labelled by everybody`;
    $("title").textContent = `Item ${place() + 1} of ${work.items.length}`;
    build();
    scrollTo(0, 0);
    $("title").focus({ preventScroll: true });
    for (const next of following().slice(0, 3))
      if (!screens.has(next.id) && !lost) load(next.id).catch(failed);
  };
  // Items that are to be labelled, from the one after this; skipped ones when their turn has come.
  const following = () => {
    const after = place() + 1;
    const order = [...work.items.slice(after), ...work.items.slice(0, Math.max(0, after - 1))];
    const found = order.filter((one) => one.state === "new" || one.state === "begun");
    if (found.length || !again) return found;
    return work.items.slice(after).filter((one) => one.state === "skipped");
  };
  const goOn = async () => {
    if (narrow.matches) $("guidelines").open = false; // they were read, and the item comes first
    const [next] = following();
    if (next) await show(next.id);
    else finish();
    if (!sheet) updateWork();
  };
  const step = (by) => {
    const next = work.items[at ? place() + by : work.items.length + Math.min(by, 0)];
    if (next) show(next.id);
    else if (by > 0 && at) finish();
  };
  const finish = () => {
    keepTyped();
    const of = (...states) => work.items.filter((one) => states.includes(one.state));
    const [open, skipped, total] = [of("new", "begun"), of("skipped"), work.items.length];
    again = skipped.length > 0;
    if (!total) return close("Nothing to label", "No items are assigned to you.");
    const all = open.length + skipped.length === 0;
    const labelled = `${count(total, "item")} ${total === 1 ? "is" : "are"} labelled. Thank you.`;
    const part = `${of("done").length} of ${count(total, "item")} labelled`;
    const text = [
      open.length ? `${count(open.length, "item")} open.` : "",
      skipped.length ? `${count(skipped.length, "item")} skipped.` : "",
      sheet && !open.length ? "Now save your labels as a file, and send it to the study lead." : "",
      "You can still change labels.",
    ];
    const ways = [
      [open.length, "Go on", goOn],
      [skipped.length, "Label skipped items", () => show(skipped[0].id)],
      [sheet, "Save as file", saveFile],
      [true, "Show all items", openList],
    ].filter(([offered]) => offered);
    const buttons = ways.map(([, name, act], n) => button(name, act, n || all ? "" : "strong"));
    if (sheet && all) buttons[0].className = "strong";
    close(all ? `All ${labelled}` : part, text.filter(Boolean).join(" "), ...buttons);
  };
  const activate = (key, focus = true, block = "") => {
    active = key;
    for (const box of $("fields").querySelectorAll("fieldset")) {
      box.classList.toggle("at", box.dataset.key === key);
      if (box.dataset.key !== key) continue;
      if (block) box.scrollIntoView({ block });
      if (!focus) continue;
      const words = box.querySelector(":scope > textarea:required");
      (words || box).focus({ preventScroll: true });
      box.scrollIntoView({ block: "nearest" });
    }
  };
  const nextField = (by) => {
    const keys = open(screens.get(at)).map((field) => field.key);
    const key = keys[keys.indexOf(active) + by];
    if (key !== undefined) activate(key);
    return key !== undefined;
  };
  const isComplete = () => {
    const [first, ...rest] = missing(screens.get(at));
    if (!first) return true;
    activate(first.key);
    say(`Still to answer: ${short(first.title)}${rest.length ? ` and ${rest.length} more` : ""}.`);
    return false;
  };
  // Enter: the next question, and from the last one the next item.
  const advance = (byField) => {
    keepTyped();
    const own = screens.get(at);
    if (byField && missing(own).length && nextField(1)) return;
    if (!isComplete()) return;
    if (!partsLeft(own)) goOn();
    else $("reveal").focus();
  };
  const later = () => (item().round === "qualification" ? "known label" : "assessment");
  // The server keeps back what comes next until it knows that this part is complete.
  const reveal = () => {
    keepTyped();
    if (!isComplete()) return;
    const own = screens.get(at);
    own.closed = true;
    act(at, PART, String(own.screen.revealed + 1), { undo: true });
    setUndoable(undoable.filter((one) => one.id !== at));
    if (lost) say(`The ${later()} comes from the server: it is shown once the connection is back.`);
  };
  const showPart = async (id) => {
    await load(id);
    if (at !== id) return;
    build();
    activate(active);
    $("texts").lastElementChild.scrollIntoView({ block: "nearest" });
  };
  const skip = () => {
    keepTyped();
    if (item().state === "done") return say("This item is labelled: there is nothing to skip.");
    if (item().state !== "skipped") act(at, WHOLE, SKIP);
    goOn().then(() => say("Skipped. It comes back at the end."));
  };
  const digit = (key) => {
    const field = open(screens.get(at)).find((one) => one.key === active);
    const chosen = key === "0" ? { value: CANNOT_TELL } : field?.options[Number(key) - 1];
    if (!chosen) return;
    act(at, field.key, pressed(field, labelOf(field), chosen.value));
    if (field.together) return; // another may follow
    if (nextField(1)) return;
    if (missing(screens.get(at)).length || !endItem()) activate(field.key);
  };
  // With everything answered, the next item comes by itself for who wants it so.
  const endItem = () => {
    if (!isAuto() || partsLeft(screens.get(at))) return false;
    const told = `${$("title").textContent.replace(/ of .*/, "")} is labelled.`;
    goOn().then(() => at && say(told));
    return true;
  };
  const nextOpen = () => {
    $("list").close();
    const [next] = following();
    if (next) show(next.id);
    else finish();
  };

  // --- the rest of the page ----------------------------------------------------------------------
  const openList = () => {
    const [next] = following();
    $("next-open").disabled = !next;
    $("next-open").firstElementChild.textContent = next ? `: ${place(next.id) + 1}` : "";
    const boxes = work.items.map((one, n) => {
      const made = button(`${n + 1}`, () => ($("list").close(), show(one.id)), one.state);
      made.append(el("span", "about", one.round ? `${one.state}, ${one.round}` : one.state));
      if (one.id === at) made.setAttribute("aria-current", "true");
      const box = el("li");
      box.append(made);
      return box;
    });
    $("list").querySelector("ol").replaceChildren(...boxes);
    $("list").showModal();
    $("list").querySelector("[aria-current]")?.focus();
  };
  // What judges read as well, and examples of each label.
  const openBrief = () => {
    if (!work?.instructions) return;
    const meaning = ({ text, about, examples }) => {
      const box = el("li");
      box.append(born("b", "", text), " ", born("span", "about", about));
      box.append(...examples.map((one) => born("p", "example", one)));
      return box;
    };
    const metric = ({ title, question, labels }) => {
      const list = el("ul");
      list.append(...labels.map(meaning));
      return [born("h3", "", title), born("p", "", question), ...(labels.length ? [list] : [])];
    };
    const { text, metrics } = work.instructions;
    const inside = $("brief").querySelector("div");
    inside.replaceChildren(born("p", "text", text), ...metrics.flatMap(metric));
    $("brief").showModal();
  };
  const makeLink = async () => {
    try {
      const { token } = await ask("api/link", {});
      $("link").textContent = `${location.origin}${location.pathname}#${token}`;
    } catch (error) {
      $("link").textContent = error.status ? error.message : "Not connected: try again later.";
    }
    $("link").hidden = false;
  };
  const leave = async () => {
    keepTyped();
    $("help").close();
    if (queue.size()) return say("Not everything is saved yet: sign out once it is.");
    try {
      await ask("api/leave", {});
    } catch (error) {
      if (error.status !== 401) return failed(error);
    }
    signedOut();
  };
  const saveFile = () => {
    keepTyped();
    const events = queue.entries().map(([, event]) => event);
    const text = JSON.stringify({ ...sheet.back, events });
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = `${work.annotator}.events.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };
  const updateWork = async () => {
    const before = changes;
    try {
      const found = await ask("api/work");
      reached();
      if (found.annotator !== work.annotator) return location.reload();
      if (changes !== before) return; // it may say what was so before: the next one tells
      const waiting = new Set(queue.entries().map(([, event]) => event.screen));
      for (const one of found.items)
        if (waiting.has(one.id)) one.state = item(one.id)?.state || one.state;
      work = found;
      if (at && !item()) goOn();
      else paint();
    } catch (error) {
      failed(error);
    }
  };
  // What another tab or device did since.
  const refresh = async () => {
    if (sheet || ended || !work) return;
    await updateWork();
    if (!at || lost || ended) return;
    const [id, before] = [at, screens.get(at)];
    await load(id).catch(failed);
    if (id !== at) return;
    const now = screens.get(id);
    if (now.hash !== before.hash || now.screen.revealed !== before.screen.revealed) build();
    else paint();
  };
  const enter = async () => {
    const token = location.hash.slice(1);
    try {
      const { role } = token ? await ask("api/enter", { token }) : {};
      if (role === "lead") return location.replace("lead");
    } catch (error) {
      if (!error.status || error.status === 429 || error.status >= 500) throw error;
      why = "This link was used before or is too old. ";
    }
    if (token) history.replaceState(null, "", location.pathname);
    const found = await ask("api/work");
    isMine(found.annotator);
    return found;
  };
  const start = async () => {
    try {
      work = sheet ? structuredClone(sheet.work) : await alone(enter);
      if (!work) return; // the lead, who goes to another page
    } catch (error) {
      const link = "A link from the study lead lets you in, once and on one device.";
      const own = "Ask for a new one, or make one on a device where you are signed in.";
      if (error.status === 401 || error.status === 403)
        return close("Open your link", `${why}${link} ${own}`);
      const text = error.status ? error.message : "Check the connection, then try again.";
      return close("The server cannot be reached", text, button("Try again", start, "strong"));
    }
    why = "";
    queue = eventQueue(`judgebench annotate ${work.study}\n${work.annotator}\n`, (event) => {
      if (event && screens.has(event.screen)) apply(screens.get(event.screen), event);
      if (event) touch(event.screen);
      else savedAt = new Date().toISOString();
      paint();
    });
    try {
      undoable = JSON.parse(sessionStorage.getItem(steps())) || [];
    } catch {
      // A browser that keeps nothing.
    }
    $("auto").checked = isAuto();
    document.title = `${short(work.study)} · labels`;
    $("study").textContent = work.study;
    $("annotator").textContent = work.annotator;
    $("tools").hidden = $("far").hidden = false;
    $("save").hidden = !sheet;
    $("session").hidden = Boolean(sheet);
    $("beside").hidden = !work.guidelines.text;
    for (const one of document.querySelectorAll(".of-spans")) one.hidden = !work.spans;
    $("work").classList.toggle("guided", Boolean(work.guidelines.text));
    // Whoever begins reads them first.
    $("guidelines").open = work.done === 0 || matchMedia("(min-width: 84rem)").matches;
    if (sheet) for (const one of work.items) await load(one.id);
    else if (queue.size()) {
      await send();
      await updateWork();
    }
    tell();
    const [next] = following();
    $("open-brief").hidden = !work.instructions;
    if (next) await show(next.id);
    else finish();
    if (next && work.items.every((one) => one.state === "new")) openBrief();
  };

  // --- what a person does --------------------------------------------------------------------
  const clicks = {
    back: () => step(-1), undo, skip, next: () => advance(false), "open-list": openList,
    "open-help": () => $("help").showModal(), "open-brief": openBrief, "make-link": makeLink, leave, save: saveFile,
    seen: () => ($("refused").hidden = true), "next-open": nextOpen,
    auto: () => auto.set($("auto").checked), "spans-add": addSelected,
  };
  for (const [name, act] of Object.entries(clicks)) $(name).addEventListener("click", act);
  for (const made of document.querySelectorAll(".close"))
    made.addEventListener("click", () => made.closest("dialog").close());
  const keys = {
    Enter: () => at && advance(true), u: undo, s: () => at && skip(), r: () => at && showRaw(), n: nextOpen, "?": clicks["open-help"], i: openBrief,
    h: () => at && work.spans && highlight(), ArrowLeft: () => step(-1), ArrowRight: () => step(1),
    ArrowUp: () => at && nextField(-1), ArrowDown: () => at && nextField(1),
  };
  $("spans").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "TEXTAREA") return;
    event.preventDefault();
    addSelected();
  });
  document.addEventListener("keydown", (event) => {
    if (!work || ended || event.ctrlKey || event.metaKey || event.altKey) return;
    const on = (selector) => event.target.closest?.(selector);
    if (event.key === "Escape" && on("fieldset textarea")) return on("fieldset").focus();
    if (on("textarea, dialog") || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && on("button, a, summary")) return;
    if (/^Arrow(Up|Down)$/.test(event.key) && on("#texts, #guidelines")) return; // these scroll
    if (/^Arrow(Left|Right)$/.test(event.key) && on(".wide")) return;
    const number = /^\d$/.test(event.key) && (() => at && digit(event.key));
    const act = number || keys[event.key] || keys[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    if (!loading && (!event.repeat || event.key.startsWith("Arrow"))) act();
  });
  document.addEventListener("visibilitychange", () => {
    watch.turn();
    if (document.visibilityState === "visible") refresh();
    else if (work) keepTyped();
  });
  addEventListener("pagehide", () => work && keepTyped());
  addEventListener("online", () => work && !ended && retry());
  addEventListener("offline", () => work && !ended && !sheet && failed(new Error("")));
  addEventListener("hashchange", () => location.hash.length > 40 && location.reload());
  addEventListener("storage", ({ key, newValue }) => {
    if (key === WHO && work && newValue !== work.annotator && !sheet) location.reload();
  });
  addEventListener("beforeunload", (event) => {
    if (queue?.broken() && queue.size()) event.preventDefault();
  });
  start();
})();
