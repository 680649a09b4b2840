(text) => {
  'use strict'
  const input = JSON.parse(text)
  const write = globalThis.write
  delete globalThis.write

  const show = (value) => {
    if (typeof value === 'string') return value
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}`.trimEnd() : String(value)
    if (typeof value === 'object' && value !== null) {
      try {
        return JSON.stringify(value) ?? String(value)
      } catch {
        return String(value)
      }
    }
    return typeof value === 'bigint' ? `${value}n` : String(value)
  }
  const print = (stream) => (...values) => write(stream, values.map(show).join(' ') + '\n')
  const stream = (number) => ({ fd: number, write: (text) => (write(number, String(text)), true) })

  const process = {
    argv: ['node', 'script.js', ...(input.arguments ?? [])],
    env: { ...input.environment },
    platform: 'signalbox',
    stdin: { fd: 0, read: () => input.stdin },
    stdout: stream(1),
    stderr: stream(2),
    exitCode: undefined,
    exit: (code) => {
      write(0, String(Number(code ?? process.exitCode ?? 0)))
      for (;;);
    },
  }
  const fs = {
    readFileSync: (file) => {
      if (file === 0 || file === '/dev/stdin') return input.stdin
      throw new Error(`the file ${String(file)} is not available: JavaScript has no files here but the standard input`)
    },
    writeSync: (number, text) => {
      if (number !== 1 && number !== 2) throw new Error(`the file descriptor ${String(number)} is not open`)
      write(number, String(text))
    },
  }
  const require = (name) => {
    const known = { fs, process }
    const found = known[String(name).replace(/^node:/, '')]
    if (found) return found
    throw new Error(`the module ${String(name)} is not available: JavaScript has no files and no network here`)
  }
  const console = { log: print(1), info: print(1), debug: print(1), warn: print(2), error: print(2), trace: print(2) }
  for (const [name, value] of Object.entries({ process, require, console })) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })
  }
  for (const [name, value] of Object.entries(input.globals ?? {})) globalThis[name] = value
}
