// Requests to the server that this page came from.

export class ApiError extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

export async function get(path, options = {}) {
  let response
  try {
    response = await fetch(path, { credentials: 'same-origin', ...options })
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(0, 'the server does not answer')
  }
  if (response.status === 204) return null
  let body
  try {
    body = await response.json()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(response.status, 'the answer of the server is not understood')
  }
  if (!response.ok) throw new ApiError(response.status, body.error || response.statusText)
  return body
}

// ask sends a statement of SQL. With a format it gives the answer as a file.
export async function ask(statement, { rows, format = '', signal } = {}) {
  const path = '/api/sql?' + new URLSearchParams({ rows, ...(format && { format }) })
  const options = { method: 'POST', headers: { 'Content-Type': 'application/sql' }, body: statement, signal }
  if (!format) return get(path, options)
  const response = await fetch(path, { credentials: 'same-origin', ...options })
  if (!response.ok) throw new ApiError(response.status, (await response.json().catch(() => ({}))).error || response.statusText)
  return response.blob()
}

// getText is for what is not JSON.
export async function getText(path) {
  const response = await fetch(path, { credentials: 'same-origin' })
  if (!response.ok) throw new ApiError(response.status, response.statusText)
  return response.text()
}

// signIn exchanges a token for a cookie.
export const signIn = token => get('/api/session', { headers: { Authorization: 'Bearer ' + token } })

// tokenFromAddress takes a token out of #token=…, which is never sent to any
// server, and out of the address and the history.
export function tokenFromAddress() {
  const match = /^#token=(.+)$/.exec(location.hash)
  if (!match) return null
  history.replaceState(history.state, '', location.pathname + location.search)
  try { return decodeURIComponent(match[1]) } catch { return match[1] }
}

export const tablePath = name => '/t/' + encodeURIComponent(name)

export const objectPath = (table, key) => '/o/' + [table, ...key.split('/')].map(encodeURIComponent).join('/')

export const objectApi = (table, key) => '/api/objects/' + [table, ...key.split('/')].map(encodeURIComponent).join('/')
