// What failed, since when, and what to do.

import { el, fill } from './dom.js'
import { get, objectPath, tablePath } from './api.js'
import { clock, moment, since, span } from './format.js'

export function problemsView() {
  const now = el('div')
  const past = el('div')
  const bad = el('div')
  const root = el('div', { class: 'problems' }, el('h1', { class: 'visually-hidden' }, 'Problems'),
    el('section', {}, el('h2', {}, 'Now'), now), el('section', {}, el('h2', {}, 'Objects that could not be taken'), bad),
    el('section', {}, el('h2', {}, 'Over'), past))

  const none = text => el('p', { class: 'empty' }, text)
  let drawn = ''

  async function draw() {
    let found
    try {
      found = await get('/api/problems')
    } catch {
      return // the banner says that the server is gone
    }
    // Redrawing what is the same would take a selection away; times are redrawn
    // each minute.
    const text = JSON.stringify(found) + Math.floor(Date.now() / 10000)
    if (text === drawn) return
    drawn = text
    const [lasting, over] = [found.problems.filter(p => !p.until), found.problems.filter(p => p.until)]
    fill(now, lasting.length ? lasting.map(problemNode) : none('Nothing is wrong.'))
    fill(past, over.length ? over.map(problemNode) : none('Nothing was wrong since the start.'))
    fill(bad, found.bad.length ? el('ul', { class: 'bad' }, found.bad.map(badNode)) : none('None.'))
  }

  return {
    root, title: 'Problems', nav: 'problems', live: {},
    draw() {},
    start: draw,
    onRegained: draw,
    onEvent(name) { if (name === 'overview') draw() },
    onKey() { return false },
  }
}

function problemNode(p) {
  return el('article', { class: p.until ? 'problem over' : 'problem' },
    el('header', {},
      el('span', { class: 'dot ' + (p.until ? 'none' : 'bad') }),
      p.table && el('a', { href: tablePath(p.table) }, p.table), p.cluster && el('span', { class: 'cluster' }, p.cluster), el('b', {}, p.what),
      el('time', { title: moment(p.since) }, p.until
        ? `${clock(p.since)}, for ${span((Date.parse(p.until) - Date.parse(p.since)) / 1000)}`
        : `since ${clock(p.since)}, ${since(p.since)}`),
      p.count > 1 && el('span', { class: 'count' }, `×${p.count}`)),
    p.detail && el('p', { class: 'detail' }, p.detail),
    p.advice && el('p', { class: 'advice' }, p.advice))
}

function badNode(b) {
  return el('li', {},
    b.key ? el('a', { href: objectPath(b.table, b.key) }, `${b.table}/${b.key}`) : el('a', { href: tablePath(b.table) }, b.table),
    el('time', { title: moment(b.since) }, `since ${clock(b.since)}`), el('p', { class: 'detail' }, b.error))
}
