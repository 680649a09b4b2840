import { useLink } from '../api'

/** useLinkRefusal says why controls are off while no server answers; undefined while one does. */
export function useLinkRefusal(): string | undefined {
  const link = useLink()
  return link.state === 'live' ? undefined : 'No connection to the server.'
}
