// A slider over the history of a table, with "now" at its right end.

import { el, fill, setText } from './dom.js'
import { get } from './api.js'
import { heardAt } from './format.js'
import { model, table as tableOf } from './model.js'
import { gapNode, place } from './gap.js'

// How often the bounds and gaps are asked for, in milliseconds.
const boundsEvery = 30000
// How long the slider must rest before the table is asked for.
const rest = 120
// How near to the right end, as a part of the whole, is "now".
const nowWithin = 0.002
// An arrow key moves by this part of the whole, and by a second with Shift.
const steps = 200

export class MomentBar {
  // at is a time in milliseconds, null for now; change(at) is called for another one.
  constructor({ table, at, change }) {
    Object.assign(this, { table, at, change, since: 0, gaps: [], asked: 0 })
    this.slider = el('input', { type: 'range', id: 'moment', step: '1', 'aria-label': 'Moment' })
    this.field = el('input', { type: 'datetime-local', id: 'moment-field', step: '1', 'aria-label': 'Moment, to the second' })
    this.track = el('div', { class: 'gaps', 'aria-hidden': 'true' })
    this.begin = el('small')
    this.word = el('output', { for: 'moment' })
    this.now = el('button', { type: 'button', id: 'now', title: 'Back to the present', onclick: () => this.set(null) }, 'Now')
    this.range = el('div', { class: 'range' }, this.track, this.slider)
    this.node = el('div', { class: 'moment', hidden: true }, this.begin, this.range, this.word, this.now, this.field)
    this.slider.addEventListener('input', () => {
      const value = Number(this.slider.value)
      this.set(value >= this.end - (this.end - this.since) * nowWithin ? null : value, rest)
    })
    this.field.addEventListener('change', () => {
      const value = new Date(this.field.value).getTime()
      if (!Number.isNaN(value)) this.set(value >= this.end ? null : value)
    })
  }

  close() {
    clearTimeout(this.timer)
    this.closed = true
  }

  get end() { return model.time || Date.now() }

  // set moves to another moment; the table is asked for when it rests there.
  set(at, wait = 0) {
    this.at = at
    this.draw()
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.change(at), wait)
  }

  // tick is called every second: the right end moves on.
  tick() {
    const t = tableOf(this.table)
    if (t?.keepsHistory && t.synced && Date.now() - this.asked > boundsEvery) this.load()
    this.draw()
  }

  async load() {
    this.asked = Date.now()
    try {
      const found = await get('/api/history/' + encodeURIComponent(this.table))
      if (this.closed || !found.since) return
      this.since = Date.parse(found.since)
      this.gaps = found.gaps
      fill(this.track, found.gaps.map(gapNode))
      this.draw()
    } catch { /* it is asked again */ }
  }

  draw() {
    const { since, end, at } = this
    // Without a history there is still a way back to now.
    this.node.hidden = !since && at === null
    this.range.hidden = this.begin.hidden = this.field.hidden = !since
    setText(this.word, at === null ? 'now' : heardAt(at))
    this.node.classList.toggle('past', at !== null)
    this.now.disabled = at === null
    if (!since) return
    this.slider.min = since
    this.slider.max = end
    this.slider.value = at === null ? end : at
    this.slider.setAttribute('aria-valuetext', at === null ? 'now' : 'as heard at ' + heardAt(at))
    setText(this.begin, heardAt(since))
    this.begin.title = 'The history begins here'
    if (document.activeElement !== this.field) this.field.value = local(at === null ? end : at)
    this.gaps.forEach((g, i) => place(this.track.children[i], since, end, g.since, g.until))
  }

  // onKey moves by keys: browsers would move by a millisecond.
  onKey(event) {
    if (event.target !== this.slider) return false
    const step = event.shiftKey ? 1000 : Math.max(1000, (this.end - this.since) / steps)
    const moves = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, PageDown: -10 * step, PageUp: 10 * step }
    if (event.key === 'End') { this.set(null); return true }
    if (event.key === 'Home') { this.set(this.since, rest); return true }
    if (!(event.key in moves)) return false
    const next = Math.max(this.since, Math.round((this.at ?? this.end) + moves[event.key]))
    this.set(next >= this.end ? null : next, rest)
    return true
  }
}

// local is a time as the field wants it.
function local(time) {
  return new Date(time - new Date(time).getTimezoneOffset() * 60000).toISOString().slice(0, 19)
}
