/** quote quotes a word for the shell where that is necessary. */
export const quote = (word: string): string => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/**
 * command prints a command of the CLI that can be pasted into a shell. Values that are undefined, empty or false are left out with their
 * flag; true is a flag without a value, and a list repeats the flag.
 */
export function command(words: string[], flags: Record<string, string | boolean | readonly string[] | undefined> = {}): string {
  const parts = words.map(quote)
  for (const [name, given] of Object.entries(flags)) {
    for (const value of typeof given === 'object' ? given : [given]) {
      if (value === undefined || value === '' || value === false) continue
      parts.push(`--${name}`, ...(value === true ? [] : [quote(value)]))
    }
  }
  return ['signalbox', ...parts].join(' ')
}

/** curl prints a call of the REST API for the shell. The token, where the server requires one, is read from the variable of the CLI. */
export function curl(origin: string, method: string, path: string, body?: string): string {
  const parts = ['curl', ...(method === 'GET' ? [] : ['-X', method]), quote(`${origin}${path}`), '-H', '"Authorization: Bearer $SIGNALBOX_TOKEN"']
  if (body !== undefined) parts.push('-H', quote('Content-Type: application/json'), '-d', quote(body))
  return parts.join(' ')
}
