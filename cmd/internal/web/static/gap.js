// Ranges of time within which states may be missing.

import { el } from './dom.js'
import { heardAt } from './format.js'

export const gapText = gap => `States${gap.section ? ' of ' + gap.section : ''} between ${heardAt(Date.parse(gap.since))} and ${heardAt(Date.parse(gap.until))} may be missing: ${gap.cause}.`

// gapNode is a hatched range.
export const gapNode = gap => el('span', { class: 'gap', title: gapText(gap) })

// place puts a node on an axis that has a start and an end: at a time, or from one to
// another.
export function place(node, start, end, from, to) {
  const part = time => Math.max(0, Math.min(100, (Date.parse(time) - start) / Math.max(1, end - start) * 100))
  node.style.left = part(from) + '%'
  if (to) node.style.width = part(to) - part(from) + '%'
}
