// Elements of a page. Names come from clients and texts from models: all of them are inserted as text, never as markup.

/** @import { Level } from "./types.js" */
/** @typedef {string | number | boolean | null | undefined} AttributeValue */
/** @typedef {Record<string, AttributeValue>} Attributes */
/** @typedef {Node | string | null | undefined} Child */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * An HTML element with attributes and children. Strings become text; null and undefined are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attributes, children);
  return node;
}

/**
 * The same for an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function shape(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG_NAMESPACE, tag);
  fill(node, attributes, children);
  return node;
}

/**
 * @param {Element} node
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
}

/**
 * The element inside a node that matches a selector; an error if there is none, because we put it there.
 * @param {ParentNode} node
 * @param {string} selector
 * @returns {HTMLElement}
 */
export function find(node, selector) {
  const found = node.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`the page has no element ${selector}`);
  return found;
}

/**
 * Set an attribute, or remove it where there is no value.
 * @param {Element} node
 * @param {string} name
 * @param {AttributeValue} value
 */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : String(value));
}

/**
 * Set a text. An equal text is left alone, so that a selection survives and a screen reader does not repeat it.
 * @param {Element} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Characters that cannot be seen, that change the direction of the text around them, that look like a space, or that
// have no meaning; spaces that HTML does not show; and accents piled up until they cover other lines.
const UNSEEN =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|^ +| +$| (?= )|(?<=\p{M}{3})\p{M}/gu;

/**
 * A name in which such characters are written as escapes, so that two different names never look the same because of them.
 * @param {string} name
 */
export function escapeInvisible(name) {
  const escaped = (/** @type {string} */ sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`;
  return name.replace(UNSEEN, (signs) => [...signs].map(escaped).join(""));
}

/**
 * The name that was written with escapes.
 * @param {string} text
 */
export function unescapeInvisible(text) {
  const code = (/** @type {string} */ hex) => Math.min(0x10ffff, Number.parseInt(hex, 16));
  return text.replace(/\\u\{([0-9a-f]{1,6})\}/gi, (_, hex) => String.fromCodePoint(code(hex)));
}

/**
 * An element that shows a number of the document, named by its path there.
 * @param {string} name
 * @param {Attributes} attributes
 */
export function field(name, attributes = {}) {
  return element("span", { "data-field": name, class: "number", ...attributes });
}

/**
 * Show a number as a text, with the exact value beside it.
 * @param {Element} node
 * @param {number | string | null | undefined} value
 * @param {string} text
 */
export function setField(node, value, text) {
  setAttribute(node, "data-value", value);
  setText(node, text);
}

/**
 * Make the children of a node match a list. Children that exist already are reused, so that the focus stays where it is.
 * @template Item
 * @template {HTMLElement} Row
 * @param {Element} parent
 * @param {readonly Item[]} items
 * @param {(item: Item) => string | number} keyOf
 * @param {(item: Item) => Row} make
 * @param {(row: Row, item: Item) => void} update
 */
export function reconcile(parent, items, keyOf, make, update) {
  const children = /** @type {Row[]} */ ([...parent.children]);
  const present = new Map(children.map((child) => [child.dataset.key, child]));
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

/** @type {Record<Level, string[]>} */
const ICON_PATHS = {
  safe: ["M12 2.5 4 5.6v5.9c0 4.9 3.3 8.6 8 10 4.7-1.4 8-5.1 8-10V5.6z", "m8.4 12 2.6 2.6 4.8-5"],
  warming: ["M12 3a9 9 0 1 0 9 9", "M12 7.5V12l3 2"],
  watch: ["M12 3.5 2.5 20.5h19z", "M12 10v4.6M12 17.4v.3"],
  stopped: ["M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18z", "M9.5 8.5v7M14.5 8.5v7"],
  broken: ["M8.3 2.5h7.4l5.8 5.8v7.4l-5.8 5.8H8.3l-5.8-5.8V8.3z", "m9 9 6 6m0-6-6 6"],
};

/**
 * The icon of a level: levels differ by shape, not only by colour.
 * @param {Level} level
 */
export function icon(level) {
  const paths = ICON_PATHS[level] ?? [];
  const drawn = paths.map((d, index) => shape("path", { d, class: index ? "icon-inner" : "icon-outer" }));
  return shape("svg", { viewBox: "0 0 24 24", class: `icon icon-${level}`, "aria-hidden": "true" }, ...drawn);
}
