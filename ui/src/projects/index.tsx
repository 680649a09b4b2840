export function ProjectsPage() { return null }
export function ProjectPage() { return null }
