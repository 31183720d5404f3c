// What a chart shows, as types: the functions *Spec make one from a game, and chart.js draws it.

/** @import { ScaleMaker } from "./scales.js" */
/** @typedef {number | null | undefined} Value a gap in a line where it is not a number */
/** @typedef {"first" | "second" | "third"} LineStyle */

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {Value[]} values
 * @property {LineStyle} style
 * @property {boolean} [stepped]
 * @property {boolean} [dots]
 * @property {{ low: number[], high: number[] }} [band]
 * @property {string} [resting] what the legend says while no place is pointed at
 */

/**
 * @typedef {object} HorizontalAxis
 * @property {number[]} values in ascending order
 * @property {number} low
 * @property {number} high
 * @property {ScaleMaker} [scale] (default: linear)
 * @property {string} name
 * @property {(value: number) => string} tick
 * @property {(index: number) => string} text
 * @property {number} [rest] the index that is read out while no place is pointed at (default: the last)
 * @property {string} [resting] the name of that place
 */

/**
 * @typedef {object} VerticalAxis
 * @property {number} low
 * @property {number} high
 * @property {number[]} [ticks]
 * @property {(value: number) => string} tick
 * @property {(value: Value, line: Line, index: number) => string} text
 */

/**
 * @typedef {object} Bars
 * @property {number[]} edges
 * @property {(Omit<Line, "values"> & { values: number[] })[]} stacks
 */

/** @typedef {{ x?: [number, number], y?: [number, number], style: string }} Zone */
/** @typedef {{ label: string, style: string, x: number, y?: undefined }} VerticalRule */
/** @typedef {{ label: string, style: string, y: number, x?: undefined }} HorizontalRule */
/** @typedef {VerticalRule | HorizontalRule} Rule */
/** @typedef {{ x: number, form: "up" | "down" | "bell", label: string }} Mark */
/** @typedef {{ name: string, text: (value: Value) => string }} Column */
/** @typedef {{ columns: Column[], rows: Value[][] }} NumberTable */

/**
 * @typedef {object} DrawnSpec
 * @property {undefined} [empty]
 * @property {string} sentence
 * @property {HorizontalAxis} x
 * @property {VerticalAxis} y
 * @property {Line[]} lines
 * @property {Bars} [bars]
 * @property {Zone[]} [zones]
 * @property {Rule[]} [rules]
 * @property {Mark[]} [marks]
 * @property {NumberTable} table
 */

/** @typedef {{ empty: string, sentence?: string }} EmptySpec */
/** @typedef {DrawnSpec | EmptySpec} ChartSpec */

export {};
