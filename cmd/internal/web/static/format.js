// Numbers and times as people read them.

const whole = new Intl.NumberFormat('en-US')

export const count = n => whole.format(n)

export function bytes(n) {
  if (!n) return '–'
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let i = 0
  while (n >= 1000 && i < units.length - 1) { n /= 1024; i++ }
  return (n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)) + ' ' + units[i]
}

export function rate(n) {
  if (!n) return '0'
  if (n < 10) return n.toFixed(1)
  return whole.format(Math.round(n))
}

// span is a length of time in one or two units.
export function span(seconds) {
  if (!(seconds >= 0)) return '–'
  if (seconds < 1) return '<1s'
  if (seconds < 60) return Math.floor(seconds) + 's'
  if (seconds < 3600) return two(seconds, 60, 'm', 1, 's', 10)
  if (seconds < 86400) return two(seconds, 3600, 'h', 60, 'm', 10)
  return two(seconds, 86400, 'd', 3600, 'h', 10)
}

// lapse is a short time, to the millisecond.
export function lapse(seconds) {
  if (!(seconds >= 0)) return '–'
  if (seconds < 0.001) return seconds ? '<1 ms' : '0 ms'
  if (seconds < 1) return Math.round(seconds * 1000) + ' ms'
  if (seconds < 60) return seconds.toFixed(1) + ' s'
  return span(seconds)
}

function two(seconds, big, bigName, small, smallName, until) {
  const a = Math.floor(seconds / big)
  const b = Math.floor((seconds % big) / small)
  return a < until && b > 0 ? `${a}${bigName}${b}${smallName}` : a + bigName
}

export const since = (time, at = Date.now()) => span((at - Date.parse(time)) / 1000)

export const clock = time => new Date(time).toLocaleTimeString('en-GB')

export const moment = time => new Date(time).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })

// heardAt is a time of today, or with its date.
export const heardAt = time => new Date(time).toDateString() === new Date().toDateString() ? clock(time) : moment(time)

const good = /^(running|ready|active|bound|available|complete|completed|succeeded|established|true|normal|following)$/i
const busy = /^(pending|containercreating|podinitializing|terminating|progressing|released|unknown|syncing|waiting)$/i

// tone says whether a status is good news.
export function tone(status) {
  if (!status) return 'none'
  if (good.test(status)) return 'good'
  if (busy.test(status)) return 'busy'
  return 'bad'
}
