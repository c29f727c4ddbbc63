package aggregated

// R4 organization.html, organizationaffiliation.html, practitionerrole.html,
// healthcareservice.html, location.html, endpoint.html, group.html.

// titleColumn shows the element name. The column with the title Name shows the object's name.
var titleColumn = column{name: "Title", cell: one[primitive]("name"), description: "The name, as people know it."}

var organizationTable = table{
	titleColumn,
	{name: "Type", cell: first[codeableConcept]("type"), description: "The first kind of organization it is."},
	{name: "City", cell: first[city]("address"), description: "The city of the first address that has one."},
	phoneColumn,
	activeColumn,
	wide(emailColumn),
	{name: "Address", wide: true, cell: first[address]("address"), description: "The first address."},
	{name: "Part Of", wide: true, cell: one[reference]("partOf"), description: "The organization of which it is a part."},
}

var organizationAffiliationTable = table{
	{name: "Organization", cell: one[reference]("organization"), description: "Where the role is available."},
	{name: "Participant", cell: one[reference]("participatingOrganization"), description: "The organization that has the role."},
	{name: "Code", cell: first[codeableConcept]("code"), description: "The first role."},
	activeColumn,
	{name: "Specialty", wide: true, cell: all[codeableConcept]("specialty"), description: "The specialties in the role."},
	{name: "Network", wide: true, cell: all[reference]("network"), description: "The networks in which the role is played."},
	{name: "Period", wide: true, cell: one[period]("period"), description: "From when to when."},
}

var practitionerRoleTable = table{
	{name: "Practitioner", cell: one[reference]("practitioner"), description: "Who has the role."},
	{name: "Organization", cell: one[reference]("organization"), description: "Where the role is available."},
	{name: "Code", cell: first[codeableConcept]("code"), description: "The first role."},
	{name: "Specialty", cell: first[codeableConcept]("specialty"), description: "The first specialty."},
	activeColumn,
	{name: "Location", wide: true, cell: all[reference]("location"), description: "The places of work."},
	{name: "Service", wide: true, cell: all[reference]("healthcareService"), description: "The services that are provided."},
	wide(phoneColumn),
	{name: "Period", wide: true, cell: one[period]("period"), description: "From when to when."},
}

var healthcareServiceTable = table{
	titleColumn,
	{name: "Category", cell: first[codeableConcept]("category"), description: "The first broad category."},
	{name: "Type", cell: first[codeableConcept]("type"), description: "The first type of service."},
	{name: "Provided By", cell: one[reference]("providedBy"), description: "The organization that provides the service."},
	activeColumn,
	{name: "Location", wide: true, cell: all[reference]("location"), description: "Where the service is provided."},
	{name: "Specialty", wide: true, cell: all[codeableConcept]("specialty"), description: "The specialties of the service."},
	wide(phoneColumn),
	{name: "Appointment", wide: true, cell: one[primitive]("appointmentRequired"), description: "Whether an appointment is needed."},
}

var locationTable = table{
	titleColumn,
	{name: "Type", cell: either(first[codeableConcept]("type"), one[codeableConcept]("physicalType")), description: "What is done there, or else what kind of place it is."},
	{name: "City", cell: one[city]("address"), description: "The city of the address."},
	{name: "Organization", cell: one[reference]("managingOrganization"), description: "The organization that runs the place."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether the place is in use."},
	wide(phoneColumn),
	{name: "Address", wide: true, cell: one[address]("address"), description: "The address."},
	{name: "Mode", wide: true, cell: one[primitive]("mode"), description: "Whether it is one place or a kind of place."},
	{name: "Part Of", wide: true, cell: one[reference]("partOf"), description: "The place of which it is a part."},
}

var endpointTable = table{
	titleColumn,
	{name: "Connection", cell: one[coding]("connectionType"), description: "The protocol."},
	{name: "Address", cell: one[primitive]("address"), description: "Where to connect."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether it can be used."},
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that runs it."},
	{name: "Payload", wide: true, cell: all[codeableConcept]("payloadType"), description: "What may be sent."},
	{name: "Period", wide: true, cell: one[period]("period"), description: "From when to when it can be used."},
}

var groupTable = table{
	titleColumn,
	{name: "Type", cell: one[primitive]("type"), description: "What the members are."},
	{name: "Actual", cell: one[primitive]("actual"), description: "Whether it is a group of particular members, or a description of any."},
	{name: "Quantity", cell: one[primitive]("quantity"), description: "The number of members."},
	activeColumn,
	{name: "Code", wide: true, cell: one[codeableConcept]("code"), description: "The kind of its members."},
	{name: "Managed By", wide: true, cell: one[reference]("managingEntity"), description: "Who keeps the group."},
}
