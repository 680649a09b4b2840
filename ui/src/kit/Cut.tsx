import { orDash } from './format'

/** A text that may be cut where it has no room, whole in its tooltip; a dash if it is empty. */
export const Cut = ({ text, mono = false }: { text: string; mono?: boolean }) => (
  <span className={mono ? 'mono' : undefined} title={text}>
    {orDash(text)}
  </span>
)
