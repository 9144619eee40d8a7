"use strict";
// Stands before every page's own script.
const $ = (id) => document.getElementById(id);
const el = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};
