import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Id, shortId } from '../kit'

/** The ID of a run as the way to it. `children` follows the ID in the link. */
export const RunId = ({ project, id, children }: { project: string; id: string; children?: ReactNode }) => (
  <Id id={id}>
    <Link to="/p/$project/runs/$id" params={{ project, id }}>
      {shortId(id)}
      {children}
    </Link>
  </Id>
)
