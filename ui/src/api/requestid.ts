/** newRequestID returns a random ID. A call that is repeated with the same request ID takes effect once. */
export function newRequestID(): string {
  // crypto.randomUUID is missing on a page that was served without TLS from another host than localhost.
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `studio-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
