/** localPath returns the path if it is one of this origin, else "/": a link to sign-in must not lead to another site. */
export function localPath(text: string): string {
  if (!/^\/(?![/\\])/.test(text) || /[\u0000-\u001f\\]/.test(text)) return '/'
  try {
    const url = new URL(text, 'http://here.invalid')
    return url.origin === 'http://here.invalid' ? `${url.pathname}${url.search}${url.hash}` : '/'
  } catch {
    return '/'
  }
}
