// The annotator's page. Every act is an event: kept in this browser at once, shown at once, and sent
// until the server acknowledges it. All items are loaded at the start, so that the page works without
// a connection. The offline sheet is the same page with the items in it (`sheet`), whose events stay
// in the browser. Text of the study reaches the page through textContent and value only.
const { sheet, strings } = JSON.parse($("data").textContent);

// --- the language of the page: the first that the browser asks for and strings.yaml has --------------
const LANGUAGE = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => strings.undo[tag]) || "en";
const plural = new Intl.PluralRules(LANGUAGE);
const words = (key, values = {}) => {
  const forms = strings[key][LANGUAGE].split("|");
  const form = plural.select(values.n ?? 2) === "one" ? forms[0] : forms.at(-1);
  return form.replace(/\{(\w+)\}/g, (_, name) => values[name]);
};
const translatePage = () => {
  document.documentElement.lang = LANGUAGE;
  for (const box of document.querySelectorAll("[data-words]")) box.prepend(words(box.dataset.words));
  for (const box of document.querySelectorAll("[data-label]"))
    box.setAttribute("aria-label", words(box.dataset.label));
  Object.assign(WORDS, { empty: words("no_text"), table: words("table"), image: words("image") });
};
const duration = (seconds) => {
  const units = [[90, 1, "second", 0], [5400, 60, "minute", 0], [Infinity, 3600, "hour", 1]];
  const [, size, unit, maximumFractionDigits] = units.find(([end]) => seconds < end);
  const style = { style: "unit", unit, unitDisplay: "short", maximumFractionDigits };
  return new Intl.NumberFormat(LANGUAGE, style).format(seconds / size);
};

// What is not sent yet, oldest first: each event under its own name in the browser's storage, so
// that two tabs never write the same thing.
const eventQueue = (prefix, changed) => {
  const events = new Map();
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
    events.set(name, JSON.parse(text));
    return events.get(name);
  };
  tryTo(() => {
    for (const name of Object.keys(localStorage))
      if (name.startsWith(prefix)) take(name, localStorage.getItem(name));
  });
  addEventListener("storage", ({ key, newValue }) => {
    if (!key?.startsWith(prefix)) return;
    if (newValue === null) events.delete(key);
    changed(newValue === null ? null : take(key, newValue));
  });
  return {
    add(event) {
      stamp = Math.max(Date.now(), stamp + 1);
      const name = `${prefix}${stamp} ${event.client_id}`;
      events.set(name, event);
      tryTo(() => localStorage.setItem(name, JSON.stringify(event)));
    },
    remove(name) {
      events.delete(name);
      tryTo(() => localStorage.removeItem(name));
    },
    entries: () => [...events].sort(([a], [b]) => (a < b ? -1 : 1)),
    size: () => events.size,
    broken: () => broken,
  };
};

// For how long each item was looked at: time counts while the page can be seen.
const MAX_MS = 300000; // of one event: longer is a person who went away
const stopwatch = () => {
  const times = new Map();
  let [since, item, isVisible] = [performance.now(), "", false];
  const turn = (next = item) => {
    const now = performance.now();
    if (isVisible && item) times.set(item, (times.get(item) || 0) + now - since);
    [since, item, isVisible] = [now, next, document.visibilityState === "visible"];
  };
  const spent = (id) => {
    turn();
    const time = Math.round(Math.min(times.get(id) || 0, MAX_MS));
    times.delete(id);
    return time;
  };
  return { turn, spent };
};

// What this browser remembers, as long as it remembers anything.
const remembered = (storage, key, value) => {
  try {
    value = JSON.parse(storage.getItem(key)) ?? value;
  } catch {
    // A browser that keeps nothing: it is as it is at first.
  }
  const set = (next) => {
    value = next;
    try {
      storage.setItem(key, JSON.stringify(next));
    } catch {
      // It holds until the page is closed.
    }
  };
  return { get: () => value, set };
};

(() => {
  const [WHOLE, SKIP, MARK, MARKED, CANNOT_TELL] = ["", "skip", "come back", "yes", ""];
  const ANNOTATOR = "judgebench annotator";
  const EVERY_MS = 5000; // labels of another device are read so often
  const short = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);
  const watch = stopwatch();
  const narrow = matchMedia("(max-width: 55.99rem)"); // texts and questions stand below each other
  const entries = new Map(); // by id, an item with its labels: screen, hash, labels, remark, notes, sent_back
  const changes = new Map(); // by id, how often its labels changed here: an older answer is dropped
  const raw = remembered(localStorage, "judgebench annotate raw", false); // no Markdown rendered
  const auto = remembered(localStorage, "judgebench annotate auto", null); // null: as the study says
  const isAuto = () => auto.get() ?? work.auto_advance;
  let steps = null; // what can be undone: of this tab, which keeps it over a reload
  let work = null;
  let queue = null;
  let at = ""; // the item that is shown; empty: none
  let active = ""; // the field that a digit answers
  let isReturning = false; // marked items are gone through
  let [isLost, isRefusing, isEnded, isSending, wait, timer] = [false, false, false, false, 0, 0];
  let savedAt = "";
  let prompted = 0;
  let nChanges = 0;

  const touch = (id) => changes.set(id, ++nChanges);
  const item = (id = at) => work.items.find((candidate) => candidate.id === id);
  const place = (id = at) => work.items.findIndex((candidate) => candidate.id === id);
  const say = (text) => {
    $("said").textContent = text;
    clearTimeout(prompted);
    prompted = setTimeout(() => ($("said").textContent = ""), 4000);
  };

  // --- an item and its labels --------------------------------------------------------------------
  const missing = ({ screen, labels }) => screen.fields.filter(({ key }) => labels[key] == null);
  const stateOf = (entry) => {
    if (!missing(entry).length) return "done";
    if (entry.labels[WHOLE] === SKIP) return "skipped";
    return entry.screen.fields.some(({ key }) => entry.labels[key] != null) ? "begun" : "new";
  };
  const updateState = (entry) => {
    const listed = item(entry.screen.id);
    if (listed) listed.state = stateOf(entry);
  };
  // Somebody is unsure of its labels, or skipped it.
  const isMarked = ({ id, state }) =>
    state === "skipped" || (state === "done" && entries.get(id)?.labels[MARK] === MARKED);
  const isReturned = (entry) => entry?.sent_back && missing(entry).length > 0;
  const apply = (entry, event) => {
    if (event.hash !== entry.hash) return;
    entry.labels[event.field] = event.label;
    entry.remark = event.remark;
    updateState(entry);
  };
  const take = (id, entry) => {
    entries.set(id, { remark: "", notes: [], ...entry });
    updateState(entry);
  };
  const applyQueue = (ids) => {
    for (const [, event] of queue.entries())
      if (ids.has(event.screen) && entries.has(event.screen)) apply(entries.get(event.screen), event);
  };
  const load = async (id) => {
    const before = changes.get(id);
    const entry = await ask(`api/screen/${id}`);
    reached();
    if (changes.get(id) !== before && entries.has(id)) return;
    take(id, entry);
    applyQueue(new Set([id]));
  };
  const pictureNames = (node) => {
    if (typeof node === "string") return [];
    return node[0] === "img" ? [node[2][0]] : node[2].flatMap(pictureNames);
  };
  const loadPictures = async () => {
    const texts = [...entries.values()].flatMap(({ screen }) => screen.sections);
    for (const { tree } of [work.guidelines, ...texts])
      for (const name of (tree || []).flatMap(pictureNames)) await fetchPicture(name);
  };

  // --- events ------------------------------------------------------------------------------------
  const act = (id, field, label, { remark = entries.get(id).remark, isUndo = false } = {}) => {
    const entry = entries.get(id);
    const client_id = crypto.randomUUID();
    const before = { id, field, label: entry.labels[field] ?? null, remark: entry.remark, client_id };
    if (!isUndo) steps.set([...steps.get(), { ...before, hash: entry.hash }].slice(-100));
    $("said").textContent = ""; // it was about what was before
    const event = {
      client_id, screen: id, hash: entry.hash, field, label, remark,
      visible_ms: watch.spent(id), at: new Date().toISOString(),
    };
    apply(entry, event);
    touch(id);
    queue.add(event);
    if (sheet) savedAt = event.at;
    send();
    paint();
  };
  const keepTyped = () => {
    const entry = entries.get(at);
    const box = $("remark");
    if (!entry || !box || box.value === entry.remark) return;
    act(at, WHOLE, entry.labels[WHOLE] ?? null, { remark: box.value });
  };
  const undo = async () => {
    keepTyped();
    const last = steps.get().at(-1);
    if (!last || !item(last.id)) return say(words("nothing_to_undo"));
    if (last.id !== at) await show(last.id);
    if (at !== last.id) return;
    steps.set(steps.get().slice(0, -1));
    if (last.hash !== entries.get(at).hash) return say(words("nothing_to_undo"));
    act(last.id, last.field, last.label, { isUndo: true, remark: last.remark });
    if (![WHOLE, MARK].includes(last.field)) activate(last.field);
    say(words("undone"));
  };

  // One tab at a time sends or signs in: what one person labelled is never sent with the session of
  // another, who uses the same browser.
  const alone = (job) => (navigator.locks ? navigator.locks.request("judgebench", job) : job());
  const isMine = (name = "") => {
    try {
      if (name) localStorage.setItem(ANNOTATOR, name);
      return [null, work?.annotator].includes(localStorage.getItem(ANNOTATOR));
    } catch {
      return true; // a browser that keeps nothing, for nobody
    }
  };
  // What this browser keeps for a reload without the server (worker.js): the page, its items and
  // pictures as they came, and the labels since. A browser that keeps nothing goes on without.
  const openKept = async () => (sheet ? null : globalThis.caches?.open("judgebench annotate").catch(() => null));
  const keep = async () => {
    const items = work.items.map((listed) => {
      const { labels, remark, notes, sent_back } = entries.get(listed.id) || listed;
      return { ...listed, labels, remark, notes, sent_back };
    });
    await (await openKept())?.put("/api/work", Response.json({ ...work, items }));
  };
  const forget = async () => {
    const kept = await openKept();
    const requests = (await kept?.keys()) || [];
    for (const request of requests) if (new URL(request.url).pathname !== "/") await kept.delete(request);
  };
  // The work since the items came; without a worker they came from the server.
  const readKept = async (assignment) => {
    const kept = await openKept();
    if (navigator.serviceWorker?.controller) {
      const since = await (await kept?.match("/api/work"))?.json();
      return since?.annotator === assignment.work.annotator ? since : assignment.work;
    }
    forget().then(() => kept?.put("/api/assignment", Response.json(assignment))).catch(() => {});
    return assignment.work;
  };
  const startWorker = async () => {
    const { serviceWorker } = navigator;
    if (!serviceWorker) return;
    const isNew = !serviceWorker.controller;
    const isReady = new Promise((resolve) => (serviceWorker.oncontrollerchange = resolve));
    await serviceWorker.register("worker.js");
    if (!isNew) return;
    await isReady;
    PICTURES.clear(); // what came before the worker is fetched once more, so that it is kept
  };
  const sendBatch = async (size) => {
    const batch = queue.entries().slice(0, size);
    let reply;
    try {
      reply = await ask("api/events", { events: batch.map(([, event]) => event) });
    } catch (error) {
      if (error.status !== 400 && error.status !== 413) throw error;
      if (batch.length > 1) return 1; // which event is it? one after the other
      reply = { saved: [], refused: { [batch[0][1].client_id]: "" } };
    }
    const refused = new Set(Object.keys(reply.refused));
    const settled = new Set([...reply.saved, ...refused]);
    if (!batch.some(([, event]) => settled.has(event.client_id))) throw new Error("no answer");
    await keep().catch(() => {}); // before they leave the queue
    for (const [name, event] of batch) {
      if (!settled.has(event.client_id)) continue;
      queue.remove(name);
      touch(event.screen);
      putBack(event, reply.before?.[event.client_id]);
      if (reply.saved.includes(event.client_id)) savedAt = reply.at;
    }
    if (refused.size) await refuse(batch.map(([, event]) => event).filter((event) => refused.has(event.client_id)));
    return size;
  };
  // What another device had labelled meanwhile is what undo brings back.
  const putBack = ({ client_id, label }, before = null) => {
    if (before === null || before === label) return;
    steps.set(steps.get().map((step) => (step.client_id === client_id ? { ...step, label: before } : step)));
  };
  const refuse = async (events) => {
    $("refused").firstElementChild.textContent = words("refused", { n: events.length });
    $("refused").hidden = false;
    for (const id of new Set(events.map((event) => event.screen))) {
      steps.set(steps.get().filter((step) => step.id !== id));
      await load(id).then(() => id === at && build(), failed);
    }
  };
  const send = async () => {
    if (sheet || isSending || isEnded || !queue.size()) return;
    isSending = true;
    clearTimeout(timer);
    try {
      await alone(async () => {
        for (let size = 50; queue.size() && !isEnded && isMine(); ) {
          size = await sendBatch(size);
          reached();
          tell();
        }
      });
      isSending = false;
      if (isMine()) send();
      else location.reload();
    } catch (error) {
      isSending = false;
      failed(error);
    }
  };
  const reached = () => {
    if (isLost) {
      say(words("connected_again"));
      loadPictures().catch(() => {}); // those that are missing still
    }
    [isLost, wait] = [false, 0];
    clearTimeout(timer);
  };
  const failed = (error) => {
    if (error.status === 401) return signedOut();
    if (error.status === 404) return updateWork(); // not this person's any more
    if (!isLost) say(words("go_on_offline"));
    [isLost, isRefusing] = [true, Boolean(error.status)];
    wait = Math.min(30000, Math.max(500, wait * 2));
    clearTimeout(timer);
    timer = setTimeout(retry, wait * (0.75 + Math.random() / 2));
    tell();
  };
  const retry = () => (queue.size() ? send() : refresh());
  const signedOut = () => {
    isEnded = true;
    forget();
    const unsent = queue?.size() ? ` ${words("unsent", { n: queue.size() })}.` : "";
    close(words("signed_out_title"), words("signed_out") + unsent);
  };

  // --- what is shown -----------------------------------------------------------------------------
  const close = (title, text, ...buttons) => {
    watch.turn("");
    at = "";
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    $("work").hidden = $("round").hidden = $("returned").hidden = true;
    $("steps").hidden = $("tools").hidden = $("far").hidden = !work || isEnded;
    $("title").textContent = title;
    $("message").replaceChildren(el("p", "", text), ...buttons);
    $("message").hidden = false;
    for (const name of ["come-back", "next"]) $(name).hidden = true;
    tell();
    $("title").focus();
  };
  const button = (text, onClick, className) => {
    const box = el("button", className, text);
    box.type = "button";
    box.addEventListener("click", onClick);
    return box;
  };
  const labelOf = (field) => entries.get(at).labels[field.key];
  // "A is better" and "cannot tell" are words of the page, all other labels those of the study.
  const optionText = ({ text, letter }) => (letter ? words("is_better", { letter }) : text);
  const option = (field, { value, text, about, letter }, [n, total]) => {
    const box = born("label", value === CANNOT_TELL ? "option unsure" : "option");
    if (letter || value === CANNOT_TELL) box.removeAttribute("lang");
    box.dataset.first = words("first"); // beside the label that counts where only one does
    const input = el("input");
    input.type = field.together ? "checkbox" : "radio";
    input.value = value;
    // Each radio button is a stop of its own for Tab, so that the arrows are free to go on.
    if (input.type === "radio") {
      input.setAttribute("aria-posinset", n);
      input.setAttribute("aria-setsize", total);
    }
    input.addEventListener("change", () => {
      const nBefore = missing(entries.get(at)).length;
      act(at, field.key, pressed(field, labelOf(field), value));
      if (!nBefore || field.together) return;
      const [next] = missing(entries.get(at));
      if (!next) endItem();
      else if (narrow.matches) activate(next.key, false, "start");
    });
    const digitKey = el("kbd", "", value === CANNOT_TELL ? "0" : n < 10 ? String(n) : "");
    digitKey.setAttribute("aria-hidden", "true");
    digitKey.hidden = !digitKey.textContent;
    const label = el("span", "", optionText({ text, letter }));
    if (about) label.append(" ", born("span", "about", about));
    box.append(input, digitKey, label);
    return box;
  };
  const fieldBox = (field) => {
    const box = el("fieldset");
    box.dataset.key = field.key;
    box.tabIndex = -1;
    if (!field.together) box.setAttribute("role", "radiogroup");
    const legend = el("legend");
    legend.append(born("b", "", field.title));
    if (field.question !== field.title) legend.append(born("span", "ask", field.question));
    if (field.together) legend.append(el("span", "note", words("first_counts")));
    const isShort = field.options.every(({ about, text }) => !about && text.length <= 20);
    const choices = el("div", isShort ? "options short" : "options");
    const unsure = option(field, { value: CANNOT_TELL, text: words("cannot_tell") }, Array(2).fill(field.options.length + 1));
    choices.append(...field.options.map((each, i) => option(field, each, [i + 1, field.options.length + 1])), unsure);
    box.append(legend, choices);
    box.addEventListener("focusin", () => activate(field.key, false));
    return box;
  };
  const remarkBox = ({ notes }) => {
    const box = el("label", "remark", words("remark"));
    const input = born("textarea", "", "");
    input.id = "remark";
    input.maxLength = 10000;
    let pause = 0;
    input.addEventListener("input", () => {
      clearTimeout(pause);
      pause = setTimeout(keepTyped, 700);
    });
    input.addEventListener("change", keepTyped);
    box.append(input);
    return [box, ...notes.filter((note) => !note.sent_back).map(noteBox)];
  };
  const noteBox = ({ text }) => {
    const box = el("p", "answer", `${words("lead_answers")}: `);
    box.append(born("span", "", text));
    return box;
  };
  // Headings that judgebench gives are words of the page; behind a word may stand a letter.
  const HEADINGS = ["question", "answer", "reference", "user", "assistant", "labels_in_question"];
  const headingOf = ({ heading }) =>
    heading.replace(/^(Labels in question|\w+)/, (text) => {
      const key = text.toLowerCase().replaceAll(" ", "_");
      return HEADINGS.includes(key) ? words(key) : text;
    });
  const showTexts = () => {
    $("guidelines").querySelector(".reading").replaceChildren(textBox(work.guidelines, raw.get()));
    const { sections } = entries.get(at).screen;
    $("work").classList.toggle("pair", sections.filter(({ compared }) => compared).length === 2);
    const boxes = sections.map((section) => {
      const box = el("div", section.compared ? "box compared" : "box");
      box.append(born("h2", "", headingOf(section)), textBox(section, raw.get()));
      return box;
    });
    if ([...sections, work.guidelines].some(({ tree }) => tree)) {
      const press = button(`${words("raw")} `, showRaw);
      press.append(el("kbd", "", "R"));
      press.setAttribute("aria-pressed", raw.get());
      const bar = el("div", "raw");
      bar.append(press);
      boxes.unshift(bar);
    }
    $("texts").replaceChildren(...boxes);
  };
  const showRaw = () => {
    raw.set(!raw.get());
    const hadFocus = document.activeElement?.closest(".raw");
    showTexts();
    if (hadFocus) $("texts").querySelector(".raw button").focus();
  };
  const build = () => {
    const entry = entries.get(at);
    showTexts();
    $("fields").replaceChildren(...entry.screen.fields.map(fieldBox), ...remarkBox(entry));
    active = (missing(entry)[0] || entry.screen.fields[0])?.key ?? "";
    paint();
  };
  const paint = () => {
    const entry = entries.get(at);
    if (entry) {
      for (const field of entry.screen.fields) {
        const box = $("fields").querySelector(`[data-key="${CSS.escape(field.key)}"]`);
        const labels = givenIn(field, entry.labels[field.key]);
        box.classList.toggle("at", field.key === active);
        for (const input of box.querySelectorAll("input")) mark(input.closest(".option"), input, labels);
      }
      if ($("remark") !== document.activeElement) $("remark").value = entry.remark;
      $("returned").hidden = !isReturned(entry);
      const reasons = entry.notes.filter((note) => note.sent_back).slice(-1);
      $("returned").replaceChildren(words("sent_back"), ...reasons.flatMap(({ text }) => [" ", born("span", "", text)]));
      $("come-back").setAttribute("aria-pressed", isMarked(item() || {}));
    }
    tell();
  };
  const status = () => {
    const time = savedAt && ` ${new Date(savedAt).toLocaleTimeString(LANGUAGE)}`;
    if (sheet) return words("kept_here") + time;
    const unsent = queue.size() ? [words("unsent", { n: queue.size() })] : [];
    if (isLost) return [words(isRefusing ? "not_saved" : "not_connected"), ...unsent].join(" · ");
    return unsent[0] || words("saved") + time;
  };
  const tell = () => {
    if (!work) return;
    const text = status();
    if ($("saved").textContent !== text) $("saved").textContent = text;
    $("saved").classList.toggle("lost", isLost);
    $("no-store").hidden = !queue.broken();
    const total = work.items.length;
    const done = work.items.filter(({ state }) => state === "done").length;
    $("part-done").max = total || 1;
    $("part-done").value = done;
    $("progress").textContent = words("labelled_of", { n: done, total });
    const seconds = work.seconds_per_item;
    const pace = seconds ? [words("pace", { time: duration(seconds) })] : [];
    if (seconds && done < total) pace.push(words("left", { time: duration(seconds * (total - done)) }));
    $("pace").textContent = pace.join(", ");
    $("undo").disabled = !steps.get().length;
    $("back").disabled = at ? place() === 0 : !total;
  };

  // --- going from one item to the next -----------------------------------------------------------
  const show = async (id) => {
    keepTyped();
    if (!entries.has(id)) {
      try {
        await load(id); // new since this page was opened
      } catch (error) {
        failed(error);
        if (!isEnded) say(words("not_here"));
        return;
      }
    }
    watch.turn(id);
    at = id;
    $("said").textContent = "";
    $("message").hidden = true;
    $("steps").hidden = $("work").hidden = false;
    for (const name of ["come-back", "next"]) $(name).hidden = false;
    const { round } = item();
    const inRound = work.items.filter((candidate) => candidate.round === round);
    $("round").hidden = !round;
    $("round").textContent = words("calibration", { n: inRound.indexOf(item()) + 1, total: inRound.length });
    $("title").textContent = words("item_of", { n: place() + 1, total: work.items.length });
    build();
    scrollTo(0, 0);
    $("title").focus({ preventScroll: true });
  };
  // Items that are to be labelled, from the one after this; marked ones when their turn has come.
  const following = () => {
    const after = place() + 1;
    const order = [...work.items.slice(after), ...work.items.slice(0, Math.max(0, after - 1))];
    const open = order.filter(({ state }) => state === "new" || state === "begun");
    if (open.length || !isReturning) return open;
    return work.items.slice(after).filter(isMarked);
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
  const nOf = (...states) => work.items.filter(({ state }) => states.includes(state)).length;
  const finish = () => {
    keepTyped();
    const [toDo, n, total] = [nOf("new", "begun"), nOf("done"), work.items.length];
    const marked = work.items.filter(isMarked);
    isReturning = marked.length > 0;
    if (!total) return close(words("nothing_title"), words("nothing"));
    const isComplete = n === total && !marked.length;
    const text = [
      toDo ? words("n_open", { n: toDo }) : "",
      marked.length ? words("n_marked", { n: marked.length }) : "",
      sheet && n === total ? words("send_file") : "",
      words("still_changeable"),
    ];
    const buttons = [
      [toDo, "go_on", goOn],
      [marked.length, "go_back", () => show(marked[0].id)],
      [sheet, "save_file", saveFile],
      [true, "show_list", openList],
    ].filter(([isOffered]) => isOffered).map(([, key, onClick]) => button(words(key), onClick));
    if (!isComplete || sheet) buttons[0].classList.add("strong");
    const title = isComplete ? words("all_labelled", { n }) : words("labelled_of", { n, total });
    close(title, text.filter(Boolean).join(" "), ...buttons);
  };
  const activate = (key, hasFocus = true, block = "") => {
    active = key;
    for (const box of $("fields").querySelectorAll("fieldset")) {
      box.classList.toggle("at", box.dataset.key === key);
      if (box.dataset.key !== key) continue;
      if (block) box.scrollIntoView({ block });
      if (!hasFocus) continue;
      box.focus({ preventScroll: true });
      box.scrollIntoView({ block: "nearest" });
    }
  };
  const nextField = (by) => {
    const { fields } = entries.get(at).screen;
    const next = fields[fields.findIndex(({ key }) => key === active) + by];
    if (next) activate(next.key);
    return Boolean(next);
  };
  // Enter: the next question, and from the last one the next item. With nothing chosen it stays, so
  // that the next digit answers no other question.
  const advance = (byField) => {
    keepTyped();
    const open = missing(entries.get(at));
    const here = byField && open.find(({ key }) => key === active);
    if (open.length && byField && !here && nextField(1)) return;
    if (open.length) {
      const { key, title } = here || open[0];
      activate(key);
      return say(words("choose_first", { title: short(title) }));
    }
    if (isReturning && isMarked(item())) act(at, MARK, null);
    goOn();
  };
  // An item that somebody is unsure of, or skips, comes back at the end.
  const comeBack = () => {
    keepTyped();
    const isDone = !missing(entries.get(at)).length;
    const [field, label] = isDone ? [MARK, MARKED] : [WHOLE, SKIP];
    if (isMarked(item())) {
      act(at, field, null);
      return say(words("unmarked"));
    }
    act(at, field, label);
    goOn().then(() => say(words("marked")));
  };
  const digit = (key) => {
    const field = entries.get(at).screen.fields.find((candidate) => candidate.key === active);
    const chosen = key === "0" ? { value: CANNOT_TELL } : field?.options[Number(key) - 1];
    if (!chosen) return;
    act(at, field.key, pressed(field, labelOf(field), chosen.value));
    if (field.together) return; // another may follow
    if (nextField(1)) return;
    if (missing(entries.get(at)).length || !endItem()) activate(field.key);
  };
  // With everything answered, the next item comes by itself for who wants it so.
  const endItem = () => {
    if (!isAuto()) return false;
    const message = words("is_labelled", { n: place() + 1 });
    goOn().then(() => at && say(message));
    return true;
  };
  const nextOpen = () => {
    $("list").close();
    const [next] = following();
    if (next) show(next.id);
    else if (at && missing(entries.get(at)).length) advance(false); // the only open one: it stays
    else finish();
  };

  // --- the rest of the page ----------------------------------------------------------------------
  const labelText = (field, label) => {
    if (label === CANNOT_TELL) return words("cannot_tell");
    const texts = givenIn(field, label).map((value) => optionText(field.options.find((each) => each.value === value) || {}));
    return texts.join(BETWEEN);
  };
  const listedItem = ({ id, state, round }, i) => {
    const entry = entries.get(id);
    const isUnsure = state === "done" && entry?.labels[MARK] === MARKED;
    const notes = [
      [true, state], [isUnsure, "skipped"], [round, "calibrating"], [isReturned(entry), "returned"],
      [entry?.notes.some((note) => !note.sent_back), "answered"],
    ].filter(([holds]) => holds).map(([, key]) => words(key));
    const box = button(`${i + 1}`, () => ($("list").close(), show(id)), isUnsure ? "skipped" : state);
    box.append(el("span", "about", notes.join(", ")));
    const labelled = entry?.screen.fields.filter(({ key }) => entry.labels[key] != null) || [];
    const labels = labelled.map((field) => labelText(field, entry.labels[field.key])).join(", ");
    if (labels) box.append(born("span", "labels", short(labels)));
    if (id === at) box.setAttribute("aria-current", "true");
    const line = el("li");
    line.append(box);
    return line;
  };
  const openList = () => {
    const [next] = following();
    $("next-open").disabled = !next;
    $("next-open").firstElementChild.textContent = next ? `: ${place(next.id) + 1}` : "";
    $("list").querySelector("ol").replaceChildren(...work.items.map(listedItem));
    $("list").showModal();
    $("list").querySelector("[aria-current]")?.focus();
  };
  // What judges read as well, and examples of each label.
  const openBrief = () => {
    if (!work?.instructions) return;
    const meaning = ({ text, about, examples }) => {
      const box = el("li");
      box.append(born("b", "", text), " ", born("span", "about", about));
      box.append(...examples.map((example) => born("p", "example", example)));
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
    } catch {
      $("link").textContent = words("no_server");
    }
    $("link").hidden = false;
  };
  const leave = async () => {
    keepTyped();
    $("help").close();
    if (queue.size()) return say(words("sign_out_later"));
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
  const takeWork = (latest) => {
    work = latest;
    for (const { id, labels, remark, notes, sent_back } of work.items)
      if (entries.has(id)) take(id, { ...entries.get(id), labels, remark, notes, sent_back });
    applyQueue(new Set(entries.keys()));
  };
  // What another device or the lead did since: labels, answers, items sent back, handed on or new.
  const updateWork = async () => {
    const [before, nDone] = [nChanges, nOf("done")];
    try {
      const latest = await ask("api/work");
      reached();
      if (latest.annotator !== work.annotator) return location.reload();
      if (nChanges !== before) return; // it may say what was so before: the next answer tells
      takeWork(latest);
      if (nOf("done") !== nDone) keep().catch(() => {});
      if (at && !item()) goOn();
      else if (!at && nOf("done") !== nDone) finish(); // an item was sent back
      else paint();
      for (const { id } of work.items) if (!entries.has(id)) await load(id);
    } catch (error) {
      failed(error);
    }
  };
  const refresh = async () => {
    if (sheet || isEnded || !work) return;
    await updateWork();
    if (!at || isLost || isEnded) return;
    const [id, { hash, notes }] = [at, entries.get(at)];
    await load(id).catch(failed);
    if (id !== at) return;
    const now = entries.get(id);
    if (now.hash !== hash || now.notes.length !== notes.length) build();
    else paint();
  };
  const enter = async () => {
    const token = location.hash.slice(1);
    try {
      const { role } = token ? await ask("api/enter", { token }) : {};
      if (role === "lead") return location.replace("lead");
      if (role) await forget(); // the items may be those of somebody before
    } catch (error) {
      if (!error.status || error.status === 429 || error.status >= 500) throw error;
    }
    if (token) history.replaceState(null, "", location.pathname);
    const assignment = await ask("api/assignment");
    isMine(assignment.work.annotator);
    return assignment;
  };
  const start = async () => {
    let assignment;
    try {
      assignment = sheet ? structuredClone(sheet) : await alone(enter);
    } catch (error) {
      if (error.status === 401 || error.status === 403) {
        forget();
        return close(words("open_link_title"), words("open_link"));
      }
      return close(words("no_server_title"), words("no_server"), button(words("try_again"), start, "strong"));
    }
    if (!assignment) return; // the lead, who goes to another page
    work = assignment.work;
    queue = eventQueue(`judgebench annotate ${work.study}\n${work.annotator}\n`, (event) => {
      if (event && entries.has(event.screen)) apply(entries.get(event.screen), event);
      if (event) touch(event.screen);
      else savedAt = new Date().toISOString();
      paint();
    });
    steps = remembered(sessionStorage, `judgebench annotate ${work.study}\n${work.annotator}\nundo`, []);
    for (const [id, entry] of Object.entries(assignment.screens)) take(id, entry);
    takeWork(await readKept(assignment).catch(() => work));
    for (const [name, address] of Object.entries(assignment.pictures || {})) PICTURES.set(name, address);
    showFrame();
    if (!sheet) {
      send();
      startWorker().then(loadPictures).catch(() => {}); // again once the connection is back
    }
    const [next] = following();
    if (next) await show(next.id);
    else finish();
    if (next && work.items.every(({ state }) => state === "new")) openBrief();
  };
  const showFrame = () => {
    $("auto").checked = isAuto();
    document.title = `${short(work.study)} · ${words("page")}`;
    $("study").textContent = work.study;
    $("annotator").textContent = work.annotator;
    $("tools").hidden = $("far").hidden = false;
    $("save").hidden = !sheet;
    $("session").hidden = Boolean(sheet);
    $("open-brief").hidden = !work.instructions;
    $("beside").hidden = !work.guidelines.text;
    $("work").classList.toggle("guided", Boolean(work.guidelines.text));
    // Whoever begins reads them first.
    $("guidelines").open = work.done === 0 || matchMedia("(min-width: 84rem)").matches;
  };

  // --- what a person does --------------------------------------------------------------------
  const clicks = {
    back: () => step(-1), undo, "come-back": comeBack, next: () => advance(false), "open-list": openList,
    "open-help": () => $("help").showModal(), "open-brief": openBrief, "make-link": makeLink, leave, save: saveFile,
    seen: () => ($("refused").hidden = true), "next-open": nextOpen, auto: () => auto.set($("auto").checked),
  };
  for (const [name, onClick] of Object.entries(clicks)) $(name).addEventListener("click", onClick);
  for (const box of document.querySelectorAll(".close"))
    box.addEventListener("click", () => box.closest("dialog")?.close());
  const keys = {
    Enter: () => (at ? advance(true) : nextOpen()), u: undo, s: () => at && comeBack(), r: () => at && showRaw(), n: nextOpen,
    "?": clicks["open-help"], i: openBrief, ArrowLeft: () => step(-1), ArrowRight: () => step(1),
    ArrowUp: () => at && nextField(-1), ArrowDown: () => at && nextField(1),
  };
  document.addEventListener("keydown", (event) => {
    if (!work || isEnded || event.ctrlKey || event.metaKey || event.altKey) return;
    const isOn = (selector) => event.target.closest?.(selector);
    if (event.key === "Escape" && isOn("#remark")) return $("fields").querySelector("fieldset").focus();
    if (isOn("textarea, dialog") || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && isOn("button, a, summary")) return;
    if (/^Arrow(Up|Down)$/.test(event.key) && isOn("#texts, #guidelines")) return; // these scroll
    if (/^Arrow(Left|Right)$/.test(event.key) && isOn(".wide")) return;
    const number = /^\d$/.test(event.key) && (() => at && digit(event.key));
    const onKey = number || keys[event.key] || keys[event.key.toLowerCase()];
    if (!onKey) return;
    event.preventDefault();
    if (!event.repeat || event.key.startsWith("Arrow")) onKey();
  });
  document.addEventListener("visibilitychange", () => {
    watch.turn();
    if (document.visibilityState === "visible") refresh();
    else if (work) keepTyped();
  });
  setInterval(() => document.visibilityState === "visible" && !isLost && !queue?.size() && refresh(), EVERY_MS);
  addEventListener("pagehide", () => work && keepTyped());
  addEventListener("online", () => work && !isEnded && retry());
  addEventListener("offline", () => work && !isEnded && !sheet && failed(new Error("")));
  addEventListener("hashchange", () => location.hash.length > 40 && location.reload());
  addEventListener("storage", ({ key, newValue }) => {
    if (key === ANNOTATOR && work && newValue !== work.annotator && !sheet) location.reload();
  });
  addEventListener("beforeunload", (event) => {
    if (queue?.broken() && queue.size()) event.preventDefault();
  });
  translatePage();
  start();
})();
