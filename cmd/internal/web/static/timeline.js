// The states that were known of an object, on an axis of time.
//
// States are asked for in pages, the newest first, and their objects one by one. Gaps
// are hatched: what was between is not known.

import { el, fill, setText } from './dom.js'
import { get, historyApi } from './api.js'
import { heardAt } from './format.js'
import { editNode } from './edit.js'
import { model } from './model.js'
import { gapNode, gapText, place } from './gap.js'

const page = 100
// A change is on the axis this much later, in milliseconds, so that many changes ask once.
const refreshAfter = 400

export class Timeline {
  // show(state) is called with the chosen state and its object, and with null for now;
  // reveal(path) for a field that is clicked.
  // at is the time, state the number of the state that is shown first.
  constructor({ table, key, at, state, show, reveal }) {
    Object.assign(this, { table, key, show, reveal, first: { at, state }, entries: [], chosen: null, since: 0, more: '' })
    this.track = el('div', { class: 'track', role: 'listbox', tabindex: '0', 'aria-label': 'States, the oldest first' })
    this.where = el('span', { class: 'where', role: 'status' })
    this.begin = el('span')
    this.older = el('button', { type: 'button', class: 'quiet older', hidden: true, onclick: () => this.loadOlder() }, 'Older')
    this.back = el('button', { type: 'button', class: 'quiet', 'aria-label': 'The state before', title: 'The state before (←)', onclick: () => this.step(-1) }, '‹')
    this.next = el('button', { type: 'button', class: 'quiet', 'aria-label': 'The state after', title: 'The state after (→)', onclick: () => this.step(1) }, '›')
    this.now = el('button', { type: 'button', id: 'now', title: 'Back to the present', onclick: () => this.choose(null) }, 'Now')
    this.node = el('section', { class: 'timeline', 'aria-label': 'History', hidden: true },
      el('div', { class: 'controls' }, el('h2', {}, 'History'), this.back, this.next, this.where, this.older, this.now),
      el('div', { class: 'axis-area' }, this.track),
      el('div', { class: 'axis' }, this.begin, el('span', {}, 'now')))
    this.details = el('section', { class: 'details', hidden: true })
    this.track.addEventListener('click', event => {
      const mark = event.target.closest('.mark')
      if (mark) this.choose(this.states.find(s => String(s.state) === mark.dataset.state))
    })
  }

  get states() { return this.entries.filter(e => !e.gap) }

  close() {
    clearTimeout(this.timer)
    this.request?.abort()
    this.closed = true
  }

  // refresh asks for newer states, soon.
  refresh() {
    if (this.timer || this.closed) return
    this.timer = setTimeout(() => { this.timer = null; this.load() }, refreshAfter)
  }

  async load() {
    const found = await this.ask('?limit=' + page)
    if (!found) return
    const fresh = found.states.toReversed()
    const kept = this.entries.filter(e => fresh.length && e.state < fresh[0].state)
    // Without a state in common there may be others in between.
    const joined = !found.continue || this.entries.some(e => fresh.some(f => f.state === e.state))
    if (!joined || !this.entries.length) this.more = found.continue || ''
    this.entries = (joined ? kept : []).concat(fresh)
    this.draw()
    const first = this.first
    this.first = null
    if (first?.state) await this.chooseFirst(s => s.state <= first.state)
    else if (first?.at) await this.chooseFirst(s => Date.parse(s.time) <= first.at)
  }

  async loadOlder() {
    const from = this.more
    const found = await this.ask(`?limit=${page}&continue=${from}`)
    if (!found || from !== this.more) return false
    this.entries = found.states.toReversed().concat(this.entries)
    this.more = found.continue || ''
    this.draw()
    return true
  }

  async ask(query) {
    try {
      const found = await get(historyApi(this.table, this.key) + query)
      if (this.closed) return null
      this.since = Date.parse(found.since)
      return found
    } catch (error) {
      if (error.status && error.status !== 404) this.tell(error.message)
      return null
    }
  }

  // chooseFirst chooses the newest state that is not too new.
  async chooseFirst(old) {
    while (this.more && !this.states.some(old)) if (!await this.loadOlder()) break
    const state = this.states.findLast(old)
    if (state) await this.choose(state)
  }

  step(by) {
    const states = this.states
    if (!states.length) return
    const i = this.chosen ? states.findIndex(s => s.state === this.chosen.state) : states.length
    if (i + by >= states.length) this.choose(null)
    else this.choose(states[Math.max(0, i + by)])
  }

  async choose(state) {
    this.request?.abort()
    this.chosen = state || null
    this.draw()
    if (!state) { this.show(null); return }
    const request = this.request = new AbortController()
    try {
      const whole = await get(`${historyApi(this.table, this.key)}?state=${state.state}`, { signal: request.signal })
      if (!this.closed && this.chosen?.state === state.state) this.show(whole)
    } catch (error) {
      if (error.name !== 'AbortError') this.tell(error.message)
    }
  }

  tell(text) {
    this.node.hidden = false
    setText(this.where, text)
  }

  draw() {
    const { states, chosen } = this
    this.node.hidden = !this.entries.length
    if (this.node.hidden) return
    const begin = this.more ? Date.parse(states[0]?.time ?? this.entries[0].gap.since) : Math.min(this.since, Date.parse(states[0]?.time ?? this.since))
    setText(this.begin, heardAt(begin))
    this.older.hidden = !this.more
    this.start = begin
    fill(this.track, this.entries.map(e => e.gap ? gapNode(e.gap) : this.mark(e)))
    this.tick()
    if (chosen) this.track.setAttribute('aria-activedescendant', 'mark-' + chosen.state)
    else this.track.removeAttribute('aria-activedescendant')
    const i = states.findIndex(s => s.state === chosen?.state)
    setText(this.where, i < 0 ? `${states.length}${this.more ? ' newest' : ''} ${states.length === 1 ? 'state' : 'states'}` : `${i + 1} of ${states.length}`)
    this.back.disabled = i === 0
    this.next.disabled = this.now.disabled = !chosen
    this.drawDetails()
  }

  // tick puts everything in its place: the right end of the axis moves on.
  tick() {
    const end = Math.max(model.time, Date.parse(this.states.at(-1)?.time) || 0)
    this.entries.forEach((e, i) => place(this.track.children[i], this.start, end, e.gap ? e.gap.since : e.time, e.gap?.until))
  }

  mark(state) {
    return el('span', {
      class: 'mark ' + state.operation, role: 'option', id: 'mark-' + state.state, 'data-state': state.state,
      'aria-selected': String(this.chosen?.state === state.state), 'aria-label': summary(state), title: summary(state),
    })
  }

  drawDetails() {
    const s = this.chosen
    this.details.hidden = !s
    if (!s) return
    const i = this.entries.findIndex(e => e.state === s.state)
    const gaps = []
    for (let n = i - 1; n >= 0 && this.entries[n].gap; n--) gaps.unshift(this.entries[n].gap)
    const edits = s.edits || []
    fill(this.details, el('h2', {}, 'Differences'), el('time', { datetime: s.time }, summary(s)),
      gaps.map(g => el('p', { class: 'gap-note' }, gapText(g))),
      edits.map(edit => editNode(edit, this.reveal)),
      !edits.length && el('p', { class: 'empty' }, nothing(s)),
      s.moreEdits && el('p', { class: 'empty' }, 'More fields differ than are shown: Raw has the whole object.'))
  }

  onKey(event) {
    if (!this.node.contains(event.target)) return false
    const keys = { ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), Home: () => this.choose(this.states[0]), End: () => this.choose(null) }
    if (event.key === 'Escape' && this.chosen) { this.choose(null); return true }
    if (!(event.key in keys)) return false
    keys[event.key]()
    return true
  }
}

const summary = s => `${s.operation}, as heard at ${heardAt(Date.parse(s.time))}, version ${s.version}`

function nothing(s) {
  if (s.noBefore) return 'The state before is no longer kept.'
  if (s.operation === 'added') return 'The first state of this object.'
  if (s.operation === 'deleted') return 'The object was deleted.'
  return 'Nothing but the version.'
}
