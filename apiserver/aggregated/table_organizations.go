package aggregated

// R4 organization.html, organizationaffiliation.html, practitionerrole.html,
// healthcareservice.html, location.html, endpoint.html, group.html.

// titleColumn shows the element name. The column with the title Name shows the object's name.
var titleColumn = column{name: "Title", cell: one[primitive]("name"), description: "The name, as people know it."}

var organizationTable = table{
	titleColumn,
	{name: "Type", cell: first[codeableConcept]("type"), description: "The first kind of the organization."},
	{name: "City", cell: first[city]("address"), description: "The city of the first address that has one."},
	phoneColumn,
	activeColumn,
	wide(emailColumn),
	{name: "Address", wide: true, cell: first[address]("address"), description: "The first address."},
	{name: "Part Of", wide: true, cell: one[reference]("partOf"), description: "The organization of which this organization is a part."},
}

var organizationAffiliationTable = table{
	{name: "Organization", cell: one[reference]("organization"), description: "The organization for which the role is performed."},
	{name: "Participant", cell: one[reference]("participatingOrganization"), description: "The organization that has the role."},
	{name: "Code", cell: first[codeableConcept]("code"), description: "The first role."},
	activeColumn,
	{name: "Specialty", wide: true, cell: all[codeableConcept]("specialty"), description: "The specialties in the role."},
	{name: "Network", wide: true, cell: all[reference]("network"), description: "The networks in which the role is performed."},
	{name: "Period", wide: true, cell: one[period]("period"), description: "The period in which the role applies."},
}

var practitionerRoleTable = table{
	{name: "Practitioner", cell: one[reference]("practitioner"), description: "The practitioner who has the role."},
	{name: "Organization", cell: one[reference]("organization"), description: "The organization in which the practitioner has the role."},
	{name: "Code", cell: first[codeableConcept]("code"), description: "The first role."},
	{name: "Specialty", cell: first[codeableConcept]("specialty"), description: "The first specialty."},
	activeColumn,
	{name: "Location", wide: true, cell: all[reference]("location"), description: "The places of work."},
	{name: "Service", wide: true, cell: all[reference]("healthcareService"), description: "The services that are provided."},
	wide(phoneColumn),
	{name: "Period", wide: true, cell: one[period]("period"), description: "The period in which the role applies."},
}

var healthcareServiceTable = table{
	titleColumn,
	{name: "Category", cell: first[codeableConcept]("category"), description: "The first broad category of the service."},
	{name: "Type", cell: first[codeableConcept]("type"), description: "The first type of service."},
	{name: "Provided By", cell: one[reference]("providedBy"), description: "The organization that provides the service."},
	activeColumn,
	{name: "Location", wide: true, cell: all[reference]("location"), description: "Where the service is provided."},
	{name: "Specialty", wide: true, cell: all[codeableConcept]("specialty"), description: "The specialties of the service."},
	wide(phoneColumn),
	{name: "Appointment", wide: true, cell: one[primitive]("appointmentRequired"), description: "Whether the service requires an appointment."},
}

var locationTable = table{
	titleColumn,
	{name: "Type", cell: either(first[codeableConcept]("type"), one[codeableConcept]("physicalType")), description: "The first function of the place, or else its physical kind, such as a room."},
	{name: "City", cell: one[city]("address"), description: "The city of the address."},
	{name: "Organization", cell: one[reference]("managingOrganization"), description: "The organization that runs the place."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether the place is in use."},
	wide(phoneColumn),
	{name: "Address", wide: true, cell: one[address]("address"), description: "The address."},
	{name: "Mode", wide: true, cell: one[primitive]("mode"), description: "Whether the record is one place or a kind of place."},
	{name: "Part Of", wide: true, cell: one[reference]("partOf"), description: "The place of which this place is a part."},
}

var endpointTable = table{
	titleColumn,
	{name: "Connection", cell: one[coding]("connectionType"), description: "The protocol of the endpoint."},
	{name: "Address", cell: one[primitive]("address"), description: "The address of the endpoint."},
	{name: "Status", cell: one[primitive]("status"), description: "Whether the endpoint can be used."},
	{name: "Organization", wide: true, cell: one[reference]("managingOrganization"), description: "The organization that runs the endpoint."},
	{name: "Payload", wide: true, cell: all[codeableConcept]("payloadType"), description: "The content that may be sent to the endpoint."},
	{name: "Period", wide: true, cell: one[period]("period"), description: "The period in which the endpoint can be used."},
}

var groupTable = table{
	titleColumn,
	{name: "Type", cell: one[primitive]("type"), description: "The type of the members, such as animal."},
	{name: "Actual", cell: one[primitive]("actual"), description: "Whether the group has particular members (true), or describes possible ones (false)."},
	{name: "Quantity", cell: one[primitive]("quantity"), description: "The number of members."},
	activeColumn,
	{name: "Code", wide: true, cell: one[codeableConcept]("code"), description: "The kind of the members, such as a species."},
	{name: "Managed By", wide: true, cell: one[reference]("managingEntity"), description: "The person or organization that manages the group."},
}
