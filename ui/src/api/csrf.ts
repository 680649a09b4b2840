let token = ''

/** csrfToken returns the token of the session; empty without one. */
export const csrfToken = (): string => token

/** setCSRFToken is called when a session begins or ends. */
export function setCSRFToken(value: string): void {
  token = value
}
