// What is known of the tables, and how they were doing in the last minutes.

import { get } from './api.js'

const kept = 300

export const model = { name: '', tables: [], problems: 0, sql: false, relay: null, time: 0, histories: new Map() }

export async function load() {
  const found = await get('/api/tables?history=1')
  for (const table of found.tables) {
    model.histories.set(table.name, table.history)
    delete table.history
  }
  take(found)
}

function take(overview) {
  model.name = overview.name
  model.tables = overview.tables
  model.problems = overview.problems
  model.sql = overview.sql
  model.relay = overview.relay ?? null
  model.time = Date.parse(overview.time)
}

// pulse takes what the stream tells every second.
export function pulse(overview) {
  take(overview)
  const time = Math.floor(Date.parse(overview.time) / 1000)
  for (const table of overview.tables) {
    const h = model.histories.get(table.name)
    if (!h) continue
    if (h.times.length && h.times.at(-1) >= time) continue
    push(h.times, time)
    push(h.objects, table.objects)
    push(h.eventsPerSecond, table.eventsPerSecond)
    push(h.age, table.age)
    push(h.lag, table.lag)
    push(h.bytesPerObject, table.bytesPerObject)
  }
}

function push(list, value) {
  list.push(value)
  if (list.length > kept) list.shift()
}

export const table = name => model.tables.find(t => t.name === name)

// condition is a table's state in one word.
export function condition(t) {
  if (t.state === 'stopped') return { word: 'stopped', tone: 'bad' }
  if (t.error) return { word: t.synced ? 'failing' : 'not synced', tone: 'bad' }
  if (!t.synced) return { word: t.fromDisk ? 'from disk' : 'syncing', tone: 'busy' }
  if (!t.fresh) return { word: 'stale', tone: 'bad' }
  if (t.state === 'listing') return { word: 'relisting', tone: 'busy' }
  return { word: 'following', tone: 'good' }
}

// series combines a value of all tables into points over time. Samples of
// different tables are not taken at the same instant, so each table counts with
// the last one that it has.
export function series(names, value, combine) {
  const histories = names.map(name => model.histories.get(name)).filter(Boolean)
  const times = [...new Set(histories.flatMap(h => h.times))].sort((a, b) => a - b)
  const at = histories.map(() => -1)
  return times.map(time => {
    let sum
    histories.forEach((h, n) => {
      while (at[n] + 1 < h.times.length && h.times[at[n] + 1] <= time) at[n]++
      if (at[n] < 0) return
      const v = value(h, at[n])
      sum = sum === undefined ? v : combine(sum, v)
    })
    return [time, sum]
  })
}
