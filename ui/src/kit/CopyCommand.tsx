import { Terminal } from 'lucide-react'
import { Button } from './Button'
import { curl, type Rest } from './command'
import { copyText } from './Id'
import { toast } from './Toast'

const copy = (text: string, what: string) => {
  void copyText(text).then((done) => {
    if (done) toast(`${what} copied.`)
    else
      toast(
        <>
          The browser did not allow to copy. {what}: <code>{text}</code>
        </>,
        'error',
      )
  })
}

/** copyCLI copies a command and reports it. */
export const copyCLI = (cli: string): void => {
  copy(cli, 'CLI command')
}

/** copyCurl copies a call of the REST API of this server and reports it. */
export const copyCurl = (rest: Rest): void => {
  copy(curl(window.location.origin, rest), 'Call by curl')
}

/** Copies the command, and where REST has it the call, that does the same as a dialog. */
export function CopyCommand({ cli, rest }: { cli: string; rest?: Rest | undefined }) {
  return (
    <>
      <Button kind="quiet" icon={<Terminal size={14} aria-hidden />} title={cli} onClick={() => copyCLI(cli)}>
        Copy CLI
      </Button>
      {rest === undefined ? null : (
        <Button kind="quiet" onClick={() => copyCurl(rest)}>
          Copy curl
        </Button>
      )}
    </>
  )
}
