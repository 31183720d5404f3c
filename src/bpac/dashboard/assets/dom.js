// Elements of a page. Names come from clients and texts from models: all of them go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; strings become text, nothing else does anything.
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// The same for a drawing.
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Set an attribute, or take it away where there is no value; what is so already is left alone.
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : String(value));
}

// Set a text; what is so already is left alone, so that a selection survives and nothing is read out twice.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A name as it is: characters that cannot be seen, or that turn the text around them, are written out.
export function visible(name) {
  const hidden = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
  return name.replace(hidden, (sign) => `\\u{${sign.codePointAt(0).toString(16)}}`);
}

// A number as people read it, with the exact one beside it.
export function field(name, attributes = {}) {
  return element("span", { "data-field": name, class: "number", ...attributes });
}

export function setField(node, value, text) {
  setAttribute(node, "data-value", value);
  setText(node, text);
}

// Bring the children of a node in line with a list, keeping those that are there already: who has the focus keeps it.
export function reconcile(parent, items, keyOf, make, update) {
  const present = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let before = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = present.get(key);
    if (child === undefined) {
      child = make(item);
      child.dataset.key = key;
    }
    present.delete(key);
    if (child === before) before = before.nextElementSibling;
    else parent.insertBefore(child, before);
    update(child, item);
  }
  for (const child of present.values()) child.remove();
}

// A small picture of a word, told apart by its shape and not only by its colour.
export function icon(name) {
  const paths = {
    safe: ["M12 2.5 4 5.6v5.9c0 4.9 3.3 8.6 8 10 4.7-1.4 8-5.1 8-10V5.6z", "m8.4 12 2.6 2.6 4.8-5"],
    warming: ["M12 3a9 9 0 1 0 9 9", "M12 7.5V12l3 2"],
    watch: ["M12 3.5 2.5 20.5h19z", "M12 10v4.6M12 17.4v.3"],
    broken: ["M8.3 2.5h7.4l5.8 5.8v7.4l-5.8 5.8H8.3l-5.8-5.8V8.3z", "m9 9 6 6m0-6-6 6"],
  }[name];
  const drawn = (paths ?? []).map((d, index) => shape("path", { d, class: index ? "icon-inner" : "icon-outer" }));
  return shape("svg", { viewBox: "0 0 24 24", class: `icon icon-${name}`, "aria-hidden": "true" }, ...drawn);
}
