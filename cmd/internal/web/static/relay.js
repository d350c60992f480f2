// A relay, or those of a fleet: origins, copies, who watches, and what the origins are spared.

import { el, fill, setText } from './dom.js'
import { chart } from './chart.js'
import { bytes, clock, count, rate, since, span } from './format.js'
import { model, condition } from './model.js'

const kept = 300

export function relayView() {
  const tiles = el('dl', { class: 'tiles' })
  const notReady = el('p', { class: 'notice', role: 'status', hidden: true })
  const charts = {
    deliveries: chart('Deliveries per second', rate),
    watches: chart('Watches', count),
    age: chart('Freshness, the oldest resource', span),
    saved: chart('Saved upstream per second', bytes),
  }
  const ofCluster = model.relay?.clusters ? [['Cluster']] : []
  const resources = el('tbody')
  const clients = el('tbody')
  const more = el('p', { class: 'more', hidden: true })
  // One sample for each second that the page was open.
  const samples = []

  const root = el('div', { class: 'overview relay' },
    el('h1', { class: 'visually-hidden' }, 'Relay'),
    notReady, tiles,
    el('section', { class: 'charts', 'aria-label': 'While this page was open' }, charts.deliveries.node, charts.watches.node, charts.age.node, charts.saved.node),
    sheet('Resources', resources, [...ofCluster, ['Resource'], ['State'], ['Objects', 'n'], ['Freshness', 'n', 'time since the last contact with the origin'], ['Watches', 'n'],
      ['Delivered', 'n', 'events sent to watches'], ['Sent', 'n', 'bytes of answers from the copy'], ['Received', 'n', 'bytes that the origin sent'], ['To the origin', '', 'reads that the copy could not answer, and why'],
      ['Relists', '', 'whole reads after the first, and why'], ['Gaps', 'n', 'times that states of the origin were missed'], ['Bad', 'n', 'objects that could not be taken'], ['Log', 'n', 'the past that is kept, for watches from older versions']]),
    sheet('Clients', clients, [...ofCluster, ['Program'], ['Caller'], ['Resource'], ['Watches', 'n'], ['Sent', 'n'], ['Since', 'n']]),
    more)

  function draw() {
    const r = model.relay
    if (!r) return
    const sum = pick => r.resources.map(pick).reduce((a, b) => a + b, 0)
    const now = {
      time: Math.floor(model.time / 1000), events: sum(t => t.sentEvents), saved: sum(t => t.sentBytes - t.receivedBytes),
      watches: sum(t => t.watches), age: Math.max(0, ...r.resources.map(t => t.age)),
    }
    if (!samples.length || samples.at(-1).time < now.time) samples.push(now)
    if (samples.length > kept) samples.shift()
    const rates = pick => samples.slice(1).map((s, i) => [s.time, Math.max(0, (pick(s) - pick(samples[i])) / (s.time - samples[i].time))])
    const perSecond = rates(s => s.events)
    charts.deliveries.draw(perSecond)
    charts.saved.draw(rates(s => s.saved))
    charts.watches.draw(samples.map(s => [s.time, s.watches]))
    charts.age.draw(samples.map(s => [s.time, s.age]))

    const down = (r.clusters ?? []).filter(c => c.notReady).map(c => `${c.name}: ${c.notReady}`)
    const why = down.length ? down.join('; ') : r.notReady
    notReady.hidden = !why
    setText(notReady, why ? `Not ready: ${why}` : '')
    drawTiles([
      r.clusters
        ? ['Origins', `${r.clusters.length} cluster${r.clusters.length === 1 ? '' : 's'}`, `${r.clusters.length - down.length} ready, since ${clock(r.since)}`]
        : ['Origin', (r.origin ?? '').replace(/^https?:\/\//, ''), `since ${clock(r.since)}`],
      ['Watches', count(now.watches), `of ${r.clientCount} client${r.clientCount === 1 ? '' : 's'}`],
      ['Deliveries', rate(perSecond.at(-1)?.[1] ?? 0) + '/s', count(now.events) + ' so far'],
      ['Freshness', span(now.age), 'of the oldest resource'],
      ['Saved upstream', now.saved > 0 ? bytes(now.saved) : '0 B', 'sent minus received'],
    ])
    fill(resources, r.resources.map(t => {
      const c = condition(t)
      return row(...named(t.cluster, t.name), [[el('span', { class: 'dot ' + c.tone }), c.word], 'state'], [count(t.objects), 'n'], [t.synced ? span(t.age) : '–', 'n'], [count(t.watches), 'n'],
        [count(t.sentEvents), 'n'], [bytes(t.sentBytes), 'n'], [bytes(t.receivedBytes), 'n'], [causes(t.forwarded), 'relists'],
        [causes(t.relists, 'start'), 'relists'], [t.gaps ? count(t.gaps) : '–', 'n'], [t.bad ? count(t.bad) : '–', t.bad ? 'n alarm' : 'n'], [t.logReach ? `${bytes(t.logBytes)}, ${span(t.logReach)}` : '–', 'n'])
    }))
    fill(clients, r.clients.length
      ? r.clients.map(c => row(...named(c.cluster, c.agent), [c.caller], [c.resource], [count(c.watches), 'n'], [bytes(c.sentBytes), 'n'], [since(c.since, model.time), 'n']))
      : el('tr', {}, el('td', { colspan: 6 + ofCluster.length, class: 'empty' }, 'Nobody watches.')))
    const hidden = r.clientCount - r.clients.length
    more.hidden = hidden <= 0
    setText(more, `and ${count(hidden)} more`)
  }

  function drawTiles(facts) {
    if (!tiles.children.length) fill(tiles, facts.map(() => el('div', {}, el('dt'), el('dd'), el('small'))))
    facts.forEach((fact, i) => fact.forEach((text, j) => setText(tiles.children[i].children[j], text)))
  }

  return {
    root, title: 'Relay', nav: 'overview', live: {},
    draw,
    onEvent(name) { if (name === 'overview') draw() },
    onKey() { return false },
  }
}

function sheet(title, body, columns) {
  return el('section', {}, el('h2', {}, title), el('div', { class: 'scroll' },
    el('table', { class: 'tables' }, el('thead', {}, el('tr', {}, columns.map(([name, kind, hint]) => el('th', { scope: 'col', class: kind, title: hint }, name)))), body)))
}

// named are the first cells of a row, with the cluster in a fleet.
const named = (cluster, name) => cluster ? [[cluster], [name]] : [[name]]

const row = ([head], ...cells) => el('tr', {}, el('th', { scope: 'row' }, head), cells.map(([text, kind]) => el('td', { class: kind }, text)))

// causes lists counters, the largest first.
const causes = (counters, without) => Object.entries(counters).filter(([cause]) => cause !== without).sort((a, b) => b[1] - a[1])
  .map(([cause, n]) => n > 1 ? `${cause} ×${count(n)}` : cause).join(', ') || '–'
