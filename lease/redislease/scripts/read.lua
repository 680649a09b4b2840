local e, why = entry()
if why then return {'malformed', why} end
if not e then return {'none'} end
return add({'entry', text(now)}, e)
